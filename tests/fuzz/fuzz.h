/* Fuzz targets: what reads bytes that others wrote. Each takes any bytes and must not crash, hang or leak; a
 * property that must hold is checked with must_hold(). `make fuzz` builds one program of each with libFuzzer;
 * tests/test_fuzz.c runs the kept corpora, tests/fuzz/corpus/<target>/, as plain tests. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int fuzz_target(const uint8_t *data, size_t size);

fuzz_target fuzz_job;     /* job JSON, held against jansson; a job object rewritten in Weir's order */
fuzz_target fuzz_entry;   /* entries: heads before bodies */
fuzz_target fuzz_rules;   /* rules and durations, as people write and as Redis keeps them */
fuzz_target fuzz_cron;    /* when a schedule is due, and its next occurrences */
fuzz_target fuzz_address; /* addresses of Redis */
fuzz_target fuzz_ndjson;  /* files of jobs: lines, a bulk that sends them */
fuzz_target fuzz_pipe;    /* what a child of --pipe writes */
fuzz_target fuzz_http;    /* requests to weir serve */
fuzz_target fuzz_api;     /* what it reads besides takes: addresses, fields, jobs */
fuzz_target fuzz_replies; /* what the reply function of every script is answered */
fuzz_target fuzz_trace;   /* traces for weir verify */
fuzz_target fuzz_search;  /* searches for jobs */

#define must_hold(condition)                                                                                 \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                   \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/* The bytes as a string, which ends at the first NUL; freed by the caller. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    must_hold(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

/* All bytes of a piece are there: a sanitizer sees those that are not. */
static inline void fuzz_touch(const void *at, size_t len)
{
    unsigned sum = 0;

    for (size_t i = 0; i < len; i++)
        sum += ((const unsigned char *)at)[i];
    __asm__ volatile("" ::"r"(sum));
}
