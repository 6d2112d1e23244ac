#include "core/wire/credential.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file.h"
#include "core/spawn.h"
#include "core/words.h"

#define WORDS_MAX 64   /* of a command */
#define REASON_MAX 200 /* bytes of what a command says, in an error */

void credential_path(const char *name, char path[PATH_MAX])
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");

    if (folder && *folder && !strchr(name, '/'))
        snprintf(path, PATH_MAX, "%s/%s", folder, name);
    else
        snprintf(path, PATH_MAX, "%s", name);
}

bool credential_is_asked(const struct redis_address *a)
{
    return a->password_file[0] || a->password_command[0];
}

/* A password while it comes: a byte more than the longest one fits. */
struct text {
    char bytes[REDIS_PASSWORD_SIZE + 1];
    size_t len;
};

/* WHERE: what it is of, for messages. */
static int take_text(struct redis_address *a, const char *where, struct text *t, struct error *e)
{
    char name[REDIS_NAME_SIZE];
    const char *wrong;

    if (t->len > 0 && t->bytes[t->len - 1] == '\n')
        t->len--;
    wrong = t->len == 0                      ? "is empty"
            : t->len >= REDIS_PASSWORD_SIZE  ? "is longer than any password"
            : memchr(t->bytes, '\0', t->len) ? "has a NUL byte"
                                             : NULL;
    if (wrong) {
        redis_address_format(a, name, sizeof name);
        return error_set(e, WEIR_ECONFIG, "redis %s: %.250s: the password %s; see what it gives", name, where,
                         wrong);
    }
    memcpy(a->password, t->bytes, t->len);
    a->password[t->len] = '\0';
    return 0;
}

/* Reads once: how many bytes, 0 at the end, or -1 and errno. What does not fit is dropped. */
static ssize_t read_text(int fd, struct text *t)
{
    char rest[512];
    size_t room = sizeof t->bytes - t->len;
    ssize_t n;

    do
        n = room ? read(fd, t->bytes + t->len, room) : read(fd, rest, sizeof rest);
    while (n < 0 && errno == EINTR);
    if (n > 0 && room)
        t->len += (size_t)n;
    return n;
}

/* ---- A file */

static int ask_file(struct redis_address *a, struct error *e)
{
    char path[PATH_MAX], where[300], name[REDIS_NAME_SIZE];
    struct text text = {.len = 0};
    bool failed = true;
    FILE *file;
    int error;

    credential_path(a->password_file, path);
    file = file_open(path);
    if (file) {
        text.len = fread(text.bytes, 1, sizeof text.bytes, file);
        failed = ferror(file);
    }
    error = errno;
    if (file)
        fclose(file);
    snprintf(where, sizeof where, "--password-file %.250s", path);
    if (!failed)
        return take_text(a, where, &text, e);
    redis_address_format(a, name, sizeof name);
    return error_set(e, WEIR_ECONFIG, "redis %s: %s: cannot be read: %s; name a file that this user may read",
                     name, where, file_why(error));
}

/* ---- A command */
/* What the command prints, and the last that it says. */
struct listening {
    struct process process;
    struct text out;
    struct tail said;
};

/* All that is there; closes *fd at its end. */
static void drain_said(struct listening *l)
{
    char bytes[512];
    ssize_t n;

    while ((n = read(l->process.err, bytes, sizeof bytes)) > 0)
        tail_keep(&l->said, bytes, (size_t)n);
    if (n == 0)
        close_fd(&l->process.err);
}

static void drain_out(struct listening *l)
{
    ssize_t n;

    while ((n = read_text(l->process.out, &l->out)) > 0)
        ;
    if (n == 0)
        close_fd(&l->process.out);
}

/* Until it has ended, whoever else holds its pipes; on a kernel without pidfds, until its pipes are closed. false: not in
 * time. */
static bool listen_to(struct listening *l)
{
    int64_t end_us = clock_mono_us() + CREDENTIAL_COMMAND_S * INT64_C(1000000), left_us;
    struct process *p = &l->process;
    bool ended = false;

    while (!ended && (left_us = end_us - clock_mono_us()) > 0) {
        struct pollfd fds[] = {{p->pidfd, POLLIN, 0}, {p->out, POLLIN, 0}, {p->err, POLLIN, 0}};

        if (poll(fds, 3, (int)(left_us / 1000 + 1)) < 0)
            continue;
        ended = fds[0].revents != 0;
        if (p->out >= 0)
            drain_out(l);
        if (p->err >= 0)
            drain_said(l);
        ended = ended || (p->pidfd < 0 && p->out < 0 && p->err < 0);
    }
    return ended;
}

static int command_failed(const struct redis_address *a, const char *program, const char *why,
                          struct error *e)
{
    char name[REDIS_NAME_SIZE];

    redis_address_format(a, name, sizeof name);
    return error_set(e, WEIR_EUNREACHABLE, "redis %s: --password-command %.60s: %.*s; run it as this user",
                     name, program, REASON_MAX, why);
}

static int judge_command(struct redis_address *a, const char *program, struct listening *l, struct error *e)
{
    char reason[END_REASON_SIZE];
    bool ended = listen_to(l);
    int status;

    if (!ended)
        kill(-l->process.pid, SIGKILL);
    status = process_wait(l->process.pid);
    if (!ended) {
        snprintf(reason, sizeof reason, "not done after %d s, and killed", CREDENTIAL_COMMAND_S);
        return command_failed(a, program, reason, e);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        process_reason(reason, status, &l->said);
        return command_failed(a, program, reason, e);
    }
    snprintf(reason, sizeof reason, "--password-command %.60s", program);
    return take_text(a, reason, &l->out, e);
}

static int ask_command(struct redis_address *a, struct error *e)
{
    char text[sizeof a->password_command], name[REDIS_NAME_SIZE], *words[WORDS_MAX + 1];
    struct listening l = {.out.len = 0};
    int error = ENOENT, status;

    words_split(a->password_command, text, words, WORDS_MAX);
    if (words[0])
        error = process_start(&l.process, words, NULL, 0);
    if (error) {
        redis_address_format(a, name, sizeof name);
        return error_set(
            e, WEIR_ECONFIG,
            "redis %s: --password-command %.60s: cannot be run: %s; name a program in $PATH or by its path",
            name, words[0] ? words[0] : "", strerror(error));
    }
    close_fd(&l.process.in);
    status = judge_command(a, words[0], &l, e);
    close_fd(&l.process.out);
    close_fd(&l.process.err);
    close_fd(&l.process.pidfd);
    return status;
}

int credential_ask(struct redis_address *a, struct error *e)
{
    return a->password_file[0] ? ask_file(a, e) : ask_command(a, e);
}
