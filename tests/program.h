/* Running the programs that were built, as a person would: build/weir and the examples. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define WORDS_MAX 24

/* How a program ended and what it printed; the texts are cut at their size. */
struct outcome {
    int code; /* exit code; 1000 + signal when it was killed by one */
    char out[16384], err[16384];
};

/* The path of something that was built, such as "weir" or "examples/demo". Static, eight at a time. */
const char *built(const char *name);
/* The path of what stands in tests/, such as "handlers/child.py". Static, eight at a time, with those. */
const char *sourced(const char *name);

/* Runs words[0], with the words up to NULL, in folder (NULL: here), standard input empty; fails the test when
 * that takes longer than two minutes. */
void program_run(struct outcome *o, const char *folder, const char *const *words);
/* The same with the words as arguments, ended by NULL. */
void run_in(struct outcome *o, const char *folder, const char *word, ...) __attribute__((sentinel));

/* Runs weir with the words of a line; a blank within a word is written as '~'. url, ns: --redis and --namespace, or NULL.
 * The exit code. */
int program_weir(struct outcome *o, const char *folder, const char *url, const char *ns, const char *line);
/* Such a line that is refused: its exit code, and a part of the one line that says why. */
struct misuse {
    const char *line;
    int code;
    const char *says;
};
/* They end with a NULL line. */
void program_misuses(const char *folder, const char *url, const char *ns, const struct misuse *m);

/* A program that goes on; what it prints goes to folder/<name>.out and .err. It dies with the test. */
pid_t program_start(const char *folder, const char *name, const char *const *words);
/* Waits for its end; the code as in struct outcome. */
int program_end(pid_t pid);

/* Is it neither gone nor a zombie? */
bool is_running(pid_t pid);
/* The number in folder/name, once a line is there. */
pid_t await_pid(const char *folder, const char *name);

/* Runs it on a terminal of its own, types answer, and returns its exit code. text: what it shows, cut at
 * size. */
int program_on_terminal(const char *const *words, const char *answer, char *text, size_t size);

/* Waits until folder/name contains text; fails the test after a minute. */
void await_text(const char *folder, const char *name, const char *text);
/* The file's text, cut at size; false when there is no such file. */
bool read_text(const char *folder, const char *name, char *text, size_t size);
/* The lines of worker.err, the log of a worker, as "type job: message"; the first two may be empty. */
bool read_log(const char *folder, char *text, size_t size);
/* Waits until that stands in it. */
void await_log(const char *folder, const char *text);
void write_text(const char *folder, const char *name, const char *text);

/* A new folder of a test's own, and its end. */
void folder_make(char folder[64]);
void folder_remove(const char *folder);
