/* A process that listens, and one more for each connection, which asks its own connection to Redis. */
#include "tests/service.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/scene.h"

#define WORDS_MOST 512

static void put_reply(FILE *out, const redisReply *r)
{
    switch (r->type) {
    case REDIS_REPLY_STRING:
        fprintf(out, "$%zu\r\n", (size_t)r->len);
        fwrite(r->str, 1, (size_t)r->len, out);
        fputs("\r\n", out);
        break;
    case REDIS_REPLY_INTEGER:
        fprintf(out, ":%lld\r\n", r->integer);
        break;
    case REDIS_REPLY_ARRAY:
        fprintf(out, "*%zu\r\n", r->elements);
        for (size_t i = 0; i < r->elements; i++)
            put_reply(out, r->element[i]);
        break;
    case REDIS_REPLY_NIL:
        fputs("$-1\r\n", out);
        break;
    default:
        fprintf(out, "%c%s\r\n", r->type == REDIS_REPLY_ERROR ? '-' : '+', r->str);
    }
}

static bool is_forbidden(const struct service_kind *kind, const char *command)
{
    char word[64];

    snprintf(word, sizeof word, " %s ", command);
    for (char *c = word; *c; c++)
        *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 32 : *c);
    return kind->forbidden && strstr(kind->forbidden, word);
}

static redisReply *ask_behind(redisContext *behind, const redisReply *command)
{
    const char *words[WORDS_MOST];
    size_t lens[WORDS_MOST];
    size_t count = command->elements < WORDS_MOST ? command->elements : WORDS_MOST;

    for (size_t i = 0; i < count; i++) {
        words[i] = command->element[i]->str;
        lens[i] = (size_t)command->element[i]->len;
    }
    return redisCommandArgv(behind, (int)count, words, lens);
}

static void answer(FILE *out, redisContext *behind, const struct service_kind *kind,
                   const redisReply *command)
{
    const char *name = command->element[0]->str;
    redisReply *reply;

    if (kind->functions && strcasecmp(name, "FUNCTION") == 0) {
        fprintf(out, "-%s\r\n", kind->functions);
    } else if (is_forbidden(kind, name)) {
        fprintf(out, "-%s '%s'\r\n", kind->refusal ? kind->refusal : "ERR unknown command", name);
    } else if (!(reply = ask_behind(behind, command))) {
        _exit(1);
    } else if (kind->info && strcasecmp(name, "INFO") == 0 && reply->type == REDIS_REPLY_STRING) {
        fprintf(out, "$%zu\r\n%s\r\n%s\r\n", strlen(kind->info) + 2 + (size_t)reply->len, kind->info,
                reply->str);
    } else {
        put_reply(out, reply);
    }
}

static void serve_one(int fd, const char *socket, const struct service_kind *kind)
{
    redisContext *behind = redisConnectUnix(socket);
    redisReader *reader = redisReaderCreate();
    FILE *out = fdopen(dup(fd), "w");
    char bytes[65536];
    ssize_t len;
    void *command;

    while ((len = read(fd, bytes, sizeof bytes)) > 0) {
        redisReaderFeed(reader, bytes, (size_t)len);
        while (redisReaderGetReply(reader, &command) == REDIS_OK && command) {
            answer(out, behind, kind, command);
            freeReplyObject(command);
        }
        fflush(out);
    }
    _exit(0);
}

static void serve(int listener, const char *socket, const struct service_kind *kind, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int fd = accept(listener, NULL, NULL);

        if (fd < 0)
            continue;
        if (fork() == 0)
            serve_one(fd, socket, kind);
        close(fd);
    }
}

void service_start(struct fake_service *f, const struct server *behind, const struct service_kind *kind)
{
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pid_t parent = getpid();

    snprintf(f->socket, sizeof f->socket, "%s/service.sock", behind->folder);
    snprintf(f->url, sizeof f->url, "unix://%s", f->socket);
    snprintf(path.sun_path, sizeof path.sun_path, "%s/service.sock", behind->folder);
    unlink(f->socket);
    if (bind(listener, (struct sockaddr *)&path, sizeof path) != 0 || listen(listener, 64) != 0)
        fail_msg("%s: cannot listen", path.sun_path);
    f->pid = fork();
    if (f->pid == 0)
        serve(listener, behind->socket, kind, parent);
    close(listener);
}

void service_stop(struct fake_service *f)
{
    kill(f->pid, SIGKILL);
    waitpid(f->pid, NULL, 0);
}
