/* Going through what one call of a script cannot read: it is asked again and again, from where it ended.
 *
 * Each answer is a JSON document; its member "next" is a list of texts that the script takes as its last
 * arguments, to go on from there. A number there stands for the text at that index of "raw". Without it, or with an empty one, that was the last page. The first call has
 * no such arguments.
 *
 * All partitions are gone through, from 0 on: each behind the last page of the one before, or their rows merged. A walk leaves calls at
 * the partition where it ended. */
#pragma once

#include "core/client/answer.h"

struct pages {
    struct weir *w;
    const char *script;
    int64_t now_us; /* < 0: Redis's time */
    void *arg;      /* of both */
    /* The arguments of each call, but for the place, ended by NULL; NULL: none, but for what ask adds. */
    const char *const *words;
    void (*ask)(struct args *a, void *arg); /* NULL: nothing */
    /* Takes a page. 0 goes on; anything else ends the walk, which returns it. */
    int (*take)(const json_t *page, void *arg);
    bool here; /* only the partition that calls go to */
    /* Before each page but the first Redis is left to others for as long as it took for the one before: it takes long to look at all. */
    bool rests;
    /* Not merged: Redis is asked for the next page before one is taken, and reads it meanwhile. take makes no calls then. */
    bool ahead;
    /* Not merged: begins at this partition, behind a page whose "next" was that; NULL: at its beginning. */
    int at;
    const json_t *place;
    /* Merges: the member that is the list of rows, and the number in each of these by which all are in order. Each row is taken as a
     * page of its own, which has "now", rows, and in "raw" the text of the row's index. */
    const char *rows, *by;
    bool down; /* merges: the largest number first */
};

WEIR_CHECKED int pages_walk(const struct pages *p);
#define PAGES_TOGETHER 3 /* walks: each has a call under way, and Redis may serve nobody else between them */
/* Walks several scripts of the partition that calls go to, and asks them all ahead. The first that fails ends all. */
WEIR_CHECKED int pages_walk_together(const struct pages *walks, size_t count);
