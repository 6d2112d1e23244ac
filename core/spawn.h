/* Starting a program as a child: no shell, a process group of its own, fresh signals, none of
 * our files, and an end when the worker ends. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct process {
    pid_t pid;
    int pidfd;        /* readable when it has ended; -1: an old kernel */
    int in, out, err; /* our ends of its standard input, output and error, nonblocking */
};

/* Runs argv, found in $PATH, with variables ("NAME=value", n of them) in front of our own environment. The
 * caller closes what is in p. The thread that calls it lives as long as the worker: the child ends with it.
 * Returns 0 or an errno. */
int process_start(struct process *p, char *const argv[], char *const variables[], size_t n);
/* Waits for its end; its number may then be another's. Returns its status, as of waitpid, or
 * PROCESS_END_UNKNOWN, which is no exit and no signal: SIGCHLD is ignored, or other code of this process has
 * waited for it. */
int process_wait(pid_t pid);
#define PROCESS_END_UNKNOWN (-1)
/* True when TERM has ended it: by the signal, or by exit 143, which is how programs that catch it say so. */
bool process_was_terminated(int status);
/* Closes *fd unless it is -1, and makes it -1. */
void close_fd(int *fd);

/* The tail keeps the last bytes that a process wrote. */
#define TAIL_SIZE 1024
struct tail {
    char at[TAIL_SIZE];
    size_t len;
};
void tail_keep(struct tail *t, const char *bytes, size_t len);

/* Why a process has ended, in one line, with the last it wrote to standard error: "exit 1: no such customer".
 */
#define END_REASON_SIZE (TAIL_SIZE + 128)
void process_reason(char reason[END_REASON_SIZE], int status, const struct tail *err);
