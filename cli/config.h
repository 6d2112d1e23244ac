/* weir.conf: sections of lines NAME = VALUE, with comments behind a # or ; that begins a line. What stands before the first section has
 * the names of the flags of every command; [worker], [handler TYPE] and [serve] those of these commands; the others are for weir apply.
 *
 * A value is the text up to the end of its line: nothing in it is a quote, an escape or a comment, so a command stands there as it does
 * behind --exec. Here a file is read and merged with others; which names a section has, and what a value means, the tables of flags say
 * (cli/flags.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

#define CONFIG_FILES_MOST 2
#define CONFIG_PLACE_SIZE 512

struct setting {
    const char *section, *title; /* "handler" and "mail" of [handler mail]; "" where there is none */
    const char *name, *value;
    const char *file; /* or what else has said it: "--redis", "$REDIS_URL" */
    int line;         /* 0: no file has */
};

struct config {
    struct setting *at; /* those that hold, in the order of the files */
    size_t count;
    struct config_file {
        char *path, *text; /* owns what the settings point to; NULL: there is none */
        int failed;        /* errno: it is there and may not be read */
        bool open_to_all;  /* everybody may read it */
    } files[CONFIG_FILES_MOST];
    struct config_text *texts; /* of config_join */
};

/* Reads the file at path; NULL: $WEIR_CONFIG, else that of the system and then that of the user, where these are there. config_free also
 * after a failure. */
WEIR_CHECKED int config_load(struct config *c, const char *path, struct error *e);
/* Reads len bytes of text, which is changed and has a NUL behind them, as the lines of file i. */
WEIR_CHECKED int config_read(struct config *c, size_t i, char *text, size_t len, struct error *e);
void config_free(struct config *c);

/* Adds a setting, which takes the place of the one of the same section, title and name. The texts stay the caller's. */
WEIR_CHECKED int config_say(struct config *c, const struct setting *s, struct error *e);
/* Finds the last one of a section without a title. NULL: there is none. */
const struct setting *config_find(const struct config *c, const char *section, const char *name);
/* Finds the titles of a section, each once: the first setting of the next one, from *at on, 0 at first. NULL: there are no more. */
const struct setting *config_next_title(const struct config *c, const char *section, size_t *at);
/* Makes "mail=30s", which lives as long as the settings; NULL: out of memory. */
const char *config_join(struct config *c, const char *title, const char *value);
/* True when the section is one of those that have the flags of a command. */
bool config_is_of_command(const char *section);
/* "/etc/weir/weir.conf:12", or what else has said it. */
const char *config_place(const struct setting *s, char out[CONFIG_PLACE_SIZE]);
