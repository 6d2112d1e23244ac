/* weir serve: limits, documents, actions and pages over HTTP. */
#include "serve/serve.h"

#include <stdlib.h>
#include <string.h>

#include "cli/command/serve.h"
#include "cli/commands.h"
#include "cli/which_redis.h"
#include "core/notify.h"
#include "serve/listen.h"

static int run_serve(struct cli *cli, int argc, char **argv);

const struct command command_serve = {.name = "serve", .logs = true, .run = run_serve};

struct serve_flags {
    const char *listen, *on_error, *socket_mode, *log, *log_level;
    bool open_to_all, allow_actions, allow_enqueue, hide_args;
    const char *token_file;
    struct flag_values hosts;
    struct flag table[12];
};

static void init_flags(struct serve_flags *f)
{
    const struct flag table[] = {
        {"listen", 0, FLAG_TEXT, "WHERE", "unix:/path or 127.0.0.1:PORT; default 127.0.0.1:8379", &f->listen},
        {"on-error", 0, FLAG_TEXT, "WORD",
         "when Redis is away: allow (200), deny (429), error (503); default error", &f->on_error},
        {"socket-mode", 0, FLAG_TEXT, "MODE",
         "permissions of the unix socket, such as 660; default: by the umask", &f->socket_mode},
        {"open-to-all", 0, FLAG_BOOL, NULL,
         "other machines may reach it too; takes ask nobody who they are, the rest needs --token-file",
         &f->open_to_all},
        {"allow-actions", 0, FLAG_BOOL, NULL, "pages and POST /api/... may change things", &f->allow_actions},
        {"allow-enqueue", 0, FLAG_BOOL, NULL, "POST /api/jobs enqueues", &f->allow_enqueue},
        {"token-file", 0, FLAG_TEXT, "FILE", "who may ask: lines ROLE TOKEN NAME; takes need none",
         &f->token_file},
        {"hide-args", 0, FLAG_BOOL, NULL, "show no payload of a job, nor keys and reasons", &f->hide_args},
        {"host", 0, FLAG_REPEATED, "NAME", "a name by which browsers reach it, besides localhost", &f->hosts},
        {"log", 0, FLAG_TEXT, "FORMAT", CLI_LOG_HELP, &f->log},
        {"log-level", 0, FLAG_TEXT, "LEVEL", CLI_LOG_LEVEL_HELP, &f->log_level},
        {.name = NULL},
    };

    *f = (struct serve_flags){.listen = "127.0.0.1:8379", .on_error = "error"};
    memcpy(f->table, table, sizeof table);
}

static int read_on_error(struct cli *cli, const char *word, enum serve_policy *policy)
{
    static const char *const words[] = {
        [SERVE_ERROR] = "error", [SERVE_ALLOW] = "allow", [SERVE_DENY] = "deny"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) {
            *policy = (enum serve_policy)i;
            return 0;
        }
    return error_set(&cli->error, WEIR_EUSAGE,
                     "serve --on-error %.60s: unknown word; give allow, deny or error", word);
}

static int read_mode(struct cli *cli, const char *text, int *mode)
{
    char *end;

    *mode = text ? (int)strtol(text, &end, 8) : -1;
    if (text && (end == text || *end || *mode < 0 || *mode > 0777))
        return error_set(&cli->error, WEIR_EUSAGE,
                         "serve --socket-mode %.60s: not a mode; give octal digits such as 660", text);
    return 0;
}

static int read_options(struct cli *cli, const struct serve_flags *f, struct serve_options *o)
{
    *o = (struct serve_options){.listen = f->listen,
                                .open_to_all = f->open_to_all,
                                .allow_actions = f->allow_actions,
                                .allow_enqueue = f->allow_enqueue,
                                .hide_args = f->hide_args,
                                .token_file = f->token_file,
                                .hosts = f->hosts.at,
                                .host_count = f->hosts.count,
                                .ns = cli->ns};
    if (cli_log(cli, f->log, f->log_level) < 0 || read_on_error(cli, f->on_error, &o->on_error) < 0 ||
        read_mode(cli, f->socket_mode, &o->socket_mode) < 0)
        return cli->error.status;
    return 0;
}

int serve_flags_try(struct cli *cli)
{
    const struct command *own = cli->command;
    struct serve_flags f;
    struct serve_options options;
    int status;

    init_flags(&f);
    cli->command = &command_serve;
    status = cli_read_section(cli, f.table, "serve", "", cli_is_of_section);
    if (status == 0 && (status = read_options(cli, &f, &options)) == 0) /* --listen may name another place */
        status = listen_check(
            f.listen, config_find(&cli->config, "serve", "listen") ? options.socket_mode : -1, &cli->error);
    if (status < 0)
        status = cli_name_line(cli, status);
    cli->command = own;
    return status;
}

static int run_serve(struct cli *cli, int argc, char **argv)
{
    struct serve_flags f;
    struct serve_options options;

    init_flags(&f);
    if (cli_parse_alone(cli, f.table, argc, argv) < 0 || read_options(cli, &f, &options) < 0)
        return cli->error.status;
    options.redis_url = cli_redis_url(cli);
    cli_expect_much();
    notify_open();
    return serve_run(&options, &cli->error);
}
