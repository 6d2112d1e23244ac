/* The guard: a thread that ends the process if the loop stands still and the lease ends. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

struct weir_worker;

struct guard {
    atomic_uint ticks; /* the loop has counted so many, one every WATCH_S while jobs run */
    pthread_t thread;
    int fd; /* an event ends the thread; -1: there is none */
};

/* Starts the guard. Where no thread can be started, a line says so. */
void worker_guard_open(struct weir_worker *w);
void worker_guard_close(struct weir_worker *w);
/* Notes that the loop runs. */
void worker_guard_tick(struct weir_worker *w);
