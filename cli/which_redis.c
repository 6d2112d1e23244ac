#include "cli/which_redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/cli.h"

#define SOCKET_PATH_MAX 107 /* sun_path and its NUL */

void dev_url_here(char url[DEV_URL_SIZE])
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_.-+,=~";
    char folder[SOCKET_PATH_MAX + 1 - sizeof DEV_SOCKET];

    if (getcwd(folder, sizeof folder) && strspn(folder, plain) == strlen(folder))
        snprintf(url, DEV_URL_SIZE, "unix://%s/%s", strcmp(folder, "/") == 0 ? "" : folder, DEV_SOCKET);
    else /* too long for a socket's path, or not to be written in a URL */
        snprintf(url, DEV_URL_SIZE, "unix:///proc/self/cwd/%s", DEV_SOCKET);
}

/* A path relative to the current folder, so that its length is no matter. */
static bool is_listening(const char *socket_path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool listening;

    if (fd < 0)
        return false;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_path);
    listening = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return listening;
}

bool dev_is_here(void)
{
    return is_listening(DEV_SOCKET);
}

/* Finds --redis, else $REDIS_URL, else that of weir dev, else that of weir.conf; NULL: none of them. Where one of the first three is there,
 * weir.conf has not set redis_url. */
static const char *find_address(const struct cli *cli)
{
    static char dev_url[DEV_URL_SIZE];
    const char *env = getenv("REDIS_URL");

    if (cli->redis_url)
        return cli->redis_url;
    if (env && *env)
        return env;
    if (!*dev_url) {
        if (!dev_is_here())
            return NULL;
        dev_url_here(dev_url);
        output_to(stderr, "weir: Redis is that of weir dev in this folder, %s\n", dev_url);
    }
    return dev_url;
}

/* More than any address that is not refused; what is cut off would have been too long anyway. */
#define JOINED_SIZE (64 * 1024)

static size_t append(char *joined, size_t len, const char *text)
{
    len += (size_t)snprintf(joined + len, JOINED_SIZE - len, "%s", text);
    return len < JOINED_SIZE ? len : JOINED_SIZE - 1;
}

static size_t append_encoded(char *joined, size_t len, const char *value)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_.-~";
    char one[8];

    for (; *value; value++) {
        snprintf(one, sizeof one, strchr(plain, *value) ? "%c" : "%%%02X", (unsigned char)*value);
        len = append(joined, len, one);
    }
    return len;
}

/* Writes the address with the flags as its parameters. */
static void join_flags(char joined[JOINED_SIZE], const char *address, const struct redis_flags *flags)
{
    const struct {
        const char *name, *value;
    } all[] = {
        {"password-file=", flags->password_file},
        {"password-command=", flags->password_command},
        {"sni=", flags->sni},
        {"cacert=", flags->cacert},
        {"cacertdir=", flags->cacertdir},
        {"cert=", flags->cert},
        {"key=", flags->key},
        {"insecure=", flags->insecure ? "yes" : NULL},
    };
    const char *mark = strchr(address, '?') ? "&" : "?";
    size_t len = append(joined, 0, address);

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!all[i].value)
            continue;
        len = append(joined, len, mark);
        len = append(joined, len, all[i].name);
        len = append_encoded(joined, len, all[i].value);
        mark = "&";
    }
}

const char *cli_redis_url(const struct cli *cli)
{
    static char joined[JOINED_SIZE];
    const char *address = find_address(cli);

    join_flags(joined, address ? address : REDIS_USUAL, &cli->redis_flags);
    return address || strcmp(joined, REDIS_USUAL) != 0 ? joined : NULL;
}

bool cli_describes_redis(const struct cli *cli)
{
    static char joined[JOINED_SIZE];

    join_flags(joined, "", &cli->redis_flags);
    return *joined;
}

static const char *source_of(const struct cli *cli, const char **url)
{
    const struct setting *said = config_find(&cli->config, "", "redis");
    static char place[CONFIG_PLACE_SIZE];

    *url = cli->redis_url ? cli->redis_url : getenv("REDIS_URL");
    if (cli->redis_url)
        return said && said->line ? config_place(said, place) : "--redis";
    return *url && **url ? "$REDIS_URL" : NULL;
}

/* Without what may be a password: what stands before the last @; with no @, what stands behind a colon and is no
 * port; parameters, one of which may be misspelt. */
void redis_mask(const char *url, char out[MASKED_SIZE])
{
    const char *scheme = strstr(url, "://"), *begin = scheme ? scheme + 3 : url, *at = strrchr(url, '@');
    const char *colon = strchr(begin, ':'), *hidden = NULL, *rest = "";
    char *parameters;

    if (at && at >= begin) {
        hidden = begin;
        rest = at;
    } else if (colon && colon[1 + strspn(colon + 1, "0123456789/")]) {
        hidden = colon;
    }
    if (hidden)
        snprintf(out, MASKED_SIZE, "%.*s***%.80s", (int)(hidden - url < 100 ? hidden - url : 100), url, rest);
    else
        snprintf(out, MASKED_SIZE, "%.160s", url);
    parameters = strchr(out, '?');
    if (parameters && strncmp(parameters, "?db=", 4) != 0)
        snprintf(parameters, (size_t)(out + MASKED_SIZE - parameters), "?***");
}

void cli_name_source(struct cli *cli)
{
    static const char malformed[] = "address of Redis: ", reached[] = "redis ";
    const char *url, *source = source_of(cli, &url), *colon;
    struct error *e = &cli->error, was = *e;
    char masked[MASKED_SIZE];

    if (e->status == WEIR_ECONFIG && source && strncmp(e->text, malformed, strlen(malformed)) == 0) {
        redis_mask(url, masked);
        error_set(e, was.status, "%s '%s': %s", source, masked, was.text + strlen(malformed));
    } else if (e->status == WEIR_EUNREACHABLE && strncmp(e->text, reached, strlen(reached)) == 0 &&
               (colon = strstr(was.text, ": "))) {
        error_set(e, was.status, "%.*s (%s)%s", (int)(colon - was.text), was.text,
                  source ? source : "no --redis or $REDIS_URL given", colon);
    }
}
