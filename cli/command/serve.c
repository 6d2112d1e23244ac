/* weir serve: limits, documents, actions and pages over HTTP. */
#include "serve/serve.h"

#include <stdlib.h>
#include <string.h>

#include "cli/command/serve.h"
#include "cli/commands.h"
#include "cli/which_redis.h"
#include "core/notify.h"
#include "serve/listen.h"

static struct {
    const char *listen, *on_error, *socket_mode, *log, *log_level;
    bool open_to_all, allow_actions, allow_enqueue, hide_args;
    const char *token_file;
    struct flag_values hosts;
} given = {.on_error = "error"};

static const struct flag flags[] = {
    {"listen", 0, FLAG_TEXT, "WHERE",
     "unix:/path or 127.0.0.1:PORT; default " LISTEN_DEFAULT ", or the socket that systemd has opened",
     &given.listen},
    {"on-error", 0, FLAG_TEXT, "WORD",
     "when Redis is away: allow (200), deny (429), error (503); default error", &given.on_error},
    {"socket-mode", 0, FLAG_TEXT, "MODE",
     "permissions of the unix socket, such as 660; default: by the umask", &given.socket_mode},
    {"open-to-all", 0, FLAG_BOOL, NULL,
     "other machines may reach it too; takes ask nobody who they are, the rest needs --token-file",
     &given.open_to_all},
    {"allow-actions", 0, FLAG_BOOL, NULL, "pages and POST /api/... may change things", &given.allow_actions},
    {"allow-enqueue", 0, FLAG_BOOL, NULL, "POST /api/jobs enqueues", &given.allow_enqueue},
    {"token-file", 0, FLAG_TEXT, "FILE", "who may ask: lines ROLE TOKEN NAME; takes need none",
     &given.token_file},
    {"hide-args", 0, FLAG_BOOL, NULL, "show no payload of a job, nor keys and reasons", &given.hide_args},
    {"host", 0, FLAG_REPEATED, "NAME", "a name by which browsers reach it, besides localhost", &given.hosts},
    {"log", 0, FLAG_TEXT, "FORMAT", CLI_LOG_HELP, &given.log},
    {"log-level", 0, FLAG_TEXT, "LEVEL", CLI_LOG_LEVEL_HELP, &given.log_level},
    {.name = NULL},
};

static int read_on_error(struct cli *cli, const char *word, enum serve_policy *policy)
{
    static const char *const words[] = {
        [SERVE_ERROR] = "error", [SERVE_ALLOW] = "allow", [SERVE_DENY] = "deny"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) {
            *policy = (enum serve_policy)i;
            return 0;
        }
    return cli_usage(cli, "serve --on-error %.60s: unknown word; give allow, deny or error", word);
}

static int read_mode(struct cli *cli, const char *text, int *mode)
{
    char *end;

    *mode = text ? (int)strtol(text, &end, 8) : -1;
    if (text && (end == text || *end || *mode < 0 || *mode > 0777))
        return cli_usage(cli, "serve --socket-mode %.60s: not a mode; give octal digits such as 660", text);
    return 0;
}

static int read_options(struct cli *cli, struct serve_options *o)
{
    *o = (struct serve_options){.listen = given.listen,
                                .open_to_all = given.open_to_all,
                                .allow_actions = given.allow_actions,
                                .allow_enqueue = given.allow_enqueue,
                                .hide_args = given.hide_args,
                                .token_file = given.token_file,
                                .hosts = given.hosts.at,
                                .host_count = given.hosts.count,
                                .ns = cli->ns};
    if (cli_log(cli, given.log, given.log_level) < 0 ||
        read_on_error(cli, given.on_error, &o->on_error) < 0 ||
        read_mode(cli, given.socket_mode, &o->socket_mode) < 0)
        return cli->error.status;
    return 0;
}

static int act(struct cli *cli, struct weir *w)
{
    struct serve_options options;

    (void)w;
    if (read_options(cli, &options) < 0)
        return cli->error.status;
    options.redis_url = cli_redis_url(cli);
    cli_expect_much();
    notify_open();
    return serve_run(&options, &cli->error);
}

const struct command command_serve = {
    .name = "serve", .run = cli_run, .flags = flags, .logs = true, .no_redis = true, .act = act};

int serve_flags_try(struct cli *cli)
{
    const struct command *own = cli->command;
    struct serve_options options;
    int status;

    cli->command = &command_serve;
    status = cli_read_section(cli, flags, "serve", "", cli_is_of_section);
    if (status == 0 && (status = read_options(cli, &options)) == 0) /* --listen may name another place */
        status = listen_check(given.listen,
                              config_find(&cli->config, "serve", "listen") ? options.socket_mode : -1,
                              &cli->error);
    if (status < 0)
        status = cli_name_line(cli, status);
    cli->command = own;
    return status;
}
