#include "serve/access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/file.h"

#define TOKENS_MOST 1000
#define LINE_SIZE 1024
#define NAME_SIZE 64
#define BEARER "Bearer "

struct token {
    char text[TOKEN_MOST + 1], name[NAME_SIZE];
    unsigned rights;
};

struct access {
    struct access_options options;
    struct token *tokens;
    size_t count;
};

static const struct {
    const char *name;
    unsigned rights;
} roles[] = {{"viewer", RIGHT_LOOK}, {"operator", RIGHT_LOOK | RIGHT_ACT}, {"producer", RIGHT_ENQUEUE}};

/* ---- The token file */

/* "operator,producer"; 0: a word of it is no role. */
static unsigned read_roles(char *text)
{
    unsigned rights = 0;

    for (char *rest, *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        unsigned before = rights;

        for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
            if (strcmp(word, roles[i].name) == 0)
                rights |= roles[i].rights;
        if (rights == before)
            return 0;
    }
    return rights;
}

/* What can stand in a header and in a cookie. */
static bool is_token(const char *text)
{
    size_t len = strlen(text);

    return len >= TOKEN_LEAST && len <= TOKEN_MOST &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=") == len;
}

static const char *read_line(struct access *a, char *line)
{
    char *rest, *words = strtok_r(line, " \t\r\n", &rest), *token, *name;
    struct token *grown, *t;

    if (!words || *words == '#')
        return NULL;
    token = strtok_r(NULL, " \t\r\n", &rest);
    name = strtok_r(NULL, " \t\r\n", &rest);
    if (!token || !is_token(token))
        return "not a token; write ROLE TOKEN NAME, the token 16 to 200 of A-Z a-z 0-9 - . _ ~ + / =";
    if (a->count == TOKENS_MOST)
        return "too many tokens; 1000 are the most";
    grown = realloc(a->tokens, (a->count + 1) * sizeof *grown);
    if (!grown)
        return "out of memory";
    a->tokens = grown;
    t = &a->tokens[a->count];
    *t = (struct token){.rights = read_roles(words)};
    if (!t->rights)
        return "not a role; write viewer, operator or producer, or several with commas";
    snprintf(t->text, sizeof t->text, "%s", token);
    snprintf(t->name, sizeof t->name, "%s", name ? name : "");
    a->count++;
    return NULL;
}

static int read_tokens(struct access *a, const char *path, FILE *file, struct error *e)
{
    char line[LINE_SIZE];
    const char *why = NULL;
    struct stat status;
    int number = 0;

    if (fstat(fileno(file), &status) == 0 && (status.st_mode & S_IROTH))
        return error_set(e, WEIR_ECONFIG, "serve --token-file %.200s: everybody can read it; chmod o-r it",
                         path);
    while (!why && fgets(line, sizeof line, file)) {
        number++;
        why = strchr(line, '\n') || feof(file) ? read_line(a, line) : "longer than 1,023 bytes";
    }
    if (why)
        return error_set(e, WEIR_ECONFIG, "serve --token-file %.200s:%d: %s", path, number, why);
    if (ferror(file) || a->count == 0)
        return error_set(e, WEIR_ECONFIG,
                         "serve --token-file %.200s: no token in it; write ROLE TOKEN NAME in a line", path);
    return 0;
}

int access_new(const struct access_options *options, struct access **access, struct error *e)
{
    struct access *a = *access = calloc(1, sizeof *a);
    FILE *file;
    int status;

    if (!a)
        return error_no_memory(e, "serve");
    a->options = *options;
    if (!options->token_file)
        return 0;
    file = file_open(options->token_file);
    if (!file)
        return error_set(e, WEIR_ECONFIG, "serve --token-file %.200s: %s; name a file that can be read",
                         options->token_file, file_why(errno));
    status = read_tokens(a, options->token_file, file, e);
    fclose(file);
    return status;
}

void access_free(struct access *a)
{
    if (a)
        free(a->tokens);
    free(a);
}

/* ---- Rights */

static unsigned allowed(const struct access *a)
{
    return RIGHT_LOOK | (a->options.actions ? RIGHT_ACT : 0u) | (a->options.enqueue ? RIGHT_ENQUEUE : 0u);
}

/* In a time that depends on nothing but the length of what was given. */
static bool is_equal(const char *ours, const char *given, size_t len)
{
    size_t ours_len = strlen(ours);
    unsigned differ = ours_len != len;

    for (size_t i = 0; i < len; i++)
        differ |= (unsigned char)ours[ours_len ? i % ours_len : 0] ^ (unsigned char)given[i];
    return differ == 0;
}

void access_token(const struct access *a, const char *token, struct visitor *v)
{
    size_t len = strnlen(token, TOKEN_MOST + 1);

    *v = (struct visitor){.name = ""};
    for (size_t i = 0; i < a->count; i++) /* the loop goes through all, whichever it is */
        if (is_equal(a->tokens[i].text, token, len))
            *v = (struct visitor){
                .known = true, .rights = a->tokens[i].rights & allowed(a), .name = a->tokens[i].name};
}

void access_visitor(const struct access *a, struct MHD_Connection *connection, struct visitor *v)
{
    const char *header = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization"),
               *cookie = MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, TOKEN_COOKIE);

    *v = (struct visitor){.name = ""};
    if (!a->options.token_file)
        *v = (struct visitor){
            .known = !a->options.beyond, .rights = a->options.beyond ? 0 : allowed(a), .name = ""};
    else if (header && strncasecmp(header, BEARER, strlen(BEARER)) == 0)
        access_token(a, header + strlen(BEARER), v);
    else if (cookie)
        access_token(a, cookie, v);
}

/* ---- Where a request comes from */

/* Reads "localhost:8379" without the port; false: it is too long. */
static bool read_host(const char *host, char name[256])
{
    size_t len = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");

    if (len > strlen(host) || len >= 256 || (host[len] && host[len] != ':'))
        return false;
    snprintf(name, 256, "%.*s", (int)len, host);
    return true;
}

static bool is_address(const char *name)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    char inner[256];

    if (*name != '[')
        return inet_pton(AF_INET, name, bytes) == 1;
    snprintf(inner, sizeof inner, "%.*s", (int)strcspn(name + 1, "]"), name + 1);
    return inet_pton(AF_INET6, inner, bytes) == 1;
}

static bool host_is_ours(const struct access *a, struct MHD_Connection *connection)
{
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    char name[256];

    if (a->options.any_host || !host) /* every browser says it */
        return true;
    if (!read_host(host, name))
        return false;
    for (int i = 0; i < a->options.host_count; i++)
        if (strcasecmp(name, a->options.hosts[i]) == 0)
            return true;
    return is_address(name) || strcasecmp(name, "localhost") == 0;
}

const char *access_wrong_host(const struct access *a, struct MHD_Connection *connection)
{
    return host_is_ours(a, connection)
               ? NULL
               : "Host is not a name of this server; start weir serve with --host NAME";
}

static bool origin_is_ours(struct MHD_Connection *connection)
{
    const char *site = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site"),
               *origin = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin"),
               *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host"),
               *scheme = origin ? strstr(origin, "://") : NULL;

    if (site)
        return strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
    return !origin || (scheme && host && strcasecmp(scheme + strlen("://"), host) == 0);
}

const char *access_wrong_origin(struct MHD_Connection *connection)
{
    return origin_is_ours(connection) ? NULL : "this request comes from a page of another site";
}

const char *access_wrong_take(const struct access *a, struct MHD_Connection *connection)
{
    const char *wrong = access_wrong_host(a, connection);

    return wrong || a->options.any_host ? wrong : access_wrong_origin(connection);
}
