/* A namespace in which all that can be many is many, and commands that are given there. */
#pragma once

#include <sys/types.h>

/* Empties Redis, and builds it. */
void large_build(void);
/* Starts build/weir with these words, that end with NULL. Its output is dropped; it dies with this process. */
pid_t large_start(const char *const *words);
/* Waits for its end; returns its wait status. cpu_us: what it has used. */
int large_wait(pid_t pid, double *cpu_us);
