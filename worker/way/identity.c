#include "worker/way/identity.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/file.h"
#include "core/wire/credential.h"
#include "core/wire/tls.h"

#define BLANKS " \t\r"

static bool is_printable(const char *text, char first)
{
    while (*text >= first && *text <= '~')
        text++;
    return !*text;
}

/* Takes a line over as a header. Returns what is wrong with it, or NULL. */
static const char *take_header(struct identity *i, const char *line)
{
    static const char *const taken[] = {
        "Content-", "Weir-", "Proxy-",   "Host:",        "Transfer-Encoding:", "Connection:",
        "Expect:",  "TE:",   "Trailer:", "traceparent:", "Keep-Alive:",        "Upgrade:"};
    size_t len = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.");

    if (len == 0 || line[len] != ':' || !line[len + 1])
        return "not a header; write Name: value, the name of A-Z a-z 0-9 - _ .";
    for (size_t n = 0; n < sizeof taken / sizeof *taken; n++)
        if (strncasecmp(line, taken[n], strlen(taken[n])) == 0)
            return "a header that the job or its connection has already; leave it out";
    if (!is_printable(line, ' '))
        return "a byte that is no printable ASCII; leave it out";
    if (i->header_count == sizeof i->headers / sizeof *i->headers)
        return "too many lines; 8 are the most";
    strcpy(i->headers[i->header_count++], line);
    return NULL;
}

static const char *take_secret(struct identity *i, const char *line)
{
    size_t len = strlen(line);

    if (len < 16 || len >= sizeof *i->secrets || !is_printable(line, '!'))
        return "not a secret; write 16 to 256 printable characters, as openssl rand -hex 32 does";
    if (i->secret_count == sizeof i->secrets / sizeof *i->secrets)
        return "too many lines; 2 are the most";
    strcpy(i->secrets[i->secret_count++], line);
    return NULL;
}

static int read_file(struct identity *i, const char *flag, const char *name,
                     const char *(*take)(struct identity *i, const char *line), struct error *e)
{
    char path[PATH_MAX], text[sizeof *i->headers], *line;
    const char *why = NULL;
    struct stat status;
    int number = 0;
    FILE *file;

    credential_path(name, path);
    if (!(file = file_open(path)))
        return error_set(e, WEIR_ECONFIG, "worker %s %.200s: %s; name a file that can be read", flag, path,
                         file_why(errno));
    if (fstat(fileno(file), &status) == 0 && (status.st_mode & S_IROTH))
        why = "everybody can read it; chmod o-r it";
    for (; !why && fgets(text, sizeof text, file); number++) {
        if (strlen(text) == sizeof text - 1)
            why = "longer than 2,046 bytes";
        line = text + strspn(text, BLANKS);
        for (size_t len = strlen(line); len > 0 && strchr(BLANKS "\n", line[len - 1]); len--)
            line[len - 1] = '\0';
        if (!why && *line && *line != '#')
            why = take(i, line);
    }
    if (!why && ferror(file))
        why = strerror(errno);
    fclose(file);
    return why ? error_set(e, WEIR_ECONFIG, "worker %s %.200s:%d: %s", flag, path, number, why) : 0;
}

int identity_read(struct identity *i, const char *headers, const char *secrets, struct error *e)
{
    char signature[SIGNATURE_SIZE];

    i->header_count = i->secret_count = 0;
    if ((headers && read_file(i, "--http-header", headers, take_header, e) < 0) ||
        (secrets && read_file(i, "--http-secret", secrets, take_secret, e) < 0))
        return e->status;
    if (secrets && i->secret_count == 0)
        return error_set(e, WEIR_ECONFIG, "worker --http-secret %.200s: no secret in it; write one in a line",
                         secrets);
    return identity_sign(i, 0, span_str(""), span_str(""), signature, e); /* OpenSSL is there */
}

int identity_sign(const struct identity *i, int64_t at_s, struct span front, struct span rest,
                  char signature[SIGNATURE_SIZE], struct error *e)
{
    unsigned char mac[TLS_MAC_SIZE];
    char *text = malloc(front.len + rest.len + 32);
    size_t begin, len;
    int rc = 0;

    if (!text)
        return error_no_memory(e, "worker");
    begin = (size_t)snprintf(text, 32, "%lld.", (long long)at_s);
    memcpy(text + begin, front.at, front.len);
    memcpy(text + begin + front.len, rest.at, rest.len);
    len = (size_t)sprintf(signature, "t=%lld", (long long)at_s);
    for (int n = 0; rc == 0 && n < i->secret_count; n++) {
        rc = tls_hmac(i->secrets[n], text, begin + front.len + rest.len, mac, e);
        for (size_t b = 0; rc == 0 && b < sizeof mac; b++)
            len += (size_t)sprintf(signature + len, b ? "%02x" : ",v1=%02x", mac[b]);
    }
    free(text);
    return rc;
}
