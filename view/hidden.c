#include "view/hidden.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "queue/job/job.h"

/* ---- Cursors */

#define CURSORS 256

static struct {
    pthread_mutex_t mutex;
    struct {
        char *cursor; /* NULL: none yet */
        char word[HIDDEN_CURSOR_SIZE];
    } at[CURSORS];
    size_t next; /* the oldest */
} hidden = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* A page that is shown again asks again for the same one. */
static size_t place_of(const char *cursor)
{
    size_t at = 0;

    while (at < CURSORS && !(hidden.at[at].cursor && strcmp(hidden.at[at].cursor, cursor) == 0))
        at++;
    return at;
}

static size_t keep_cursor(const char *cursor)
{
    size_t at = hidden.next;

    hidden.next = (at + 1) % CURSORS;
    free(hidden.at[at].cursor);
    hidden.at[at].cursor = strdup(cursor);
    job_make_id(hidden.at[at].word);
    return at;
}

void view_hide_cursor(const char *cursor, char word[HIDDEN_CURSOR_SIZE])
{
    size_t at;

    pthread_mutex_lock(&hidden.mutex);
    at = place_of(cursor);
    if (at == CURSORS)
        at = keep_cursor(cursor);
    memcpy(word, hidden.at[at].word, HIDDEN_CURSOR_SIZE);
    pthread_mutex_unlock(&hidden.mutex);
}

int view_find_cursor(const char *word, char **cursor, struct error *e)
{
    *cursor = NULL;
    pthread_mutex_lock(&hidden.mutex);
    for (size_t at = 0; at < CURSORS && !*cursor; at++)
        if (hidden.at[at].cursor && strcmp(hidden.at[at].word, word) == 0)
            *cursor = strdup(hidden.at[at].cursor);
    pthread_mutex_unlock(&hidden.mutex);
    if (*cursor)
        return 0;
    return error_set(e, WEIR_EINPUT, "cursor: not known any more; begin the search again, without it");
}

/* ---- Members of documents */

static size_t before_slash(const char *gate)
{
    return strcspn(gate, "/");
}

/* Finds where the key begins in lane:<queue>/<type>/<key>; other lists have none. */
static size_t before_key_of_lane(const char *list)
{
    const char *kind = strncmp(list, "lane:", 5) == 0 ? strchr(list, '/') : NULL,
               *key = kind ? strchr(kind + 1, '/') : NULL;

    return key ? (size_t)(key - list) : strlen(list);
}

/* "weight NAME KEY N", "pause NAME/KEY ...", and so resume, set and remove, "jobs ACTION SEARCH: N". */
size_t view_change_shown(const char *what)
{
    static const struct {
        const char *verb;
        char before;
    } of_keys[] = {{"weight ", ' '}, {"pause ", '/'},  {"resume ", '/'},
                   {"set ", '/'},    {"remove ", '/'}, {"jobs ", ' '}};

    for (size_t i = 0; i < sizeof of_keys / sizeof *of_keys; i++) {
        size_t verb = strlen(of_keys[i].verb), name = verb;

        if (strncmp(what, of_keys[i].verb, verb) != 0)
            continue;
        name += strcspn(what + verb, " /");
        return what[name] == of_keys[i].before ? name + 1 : strlen(what);
    }
    return strlen(what);
}

/* shown: how much of the text may be shown; NULL: nothing. */
static const struct {
    const char *name;
    size_t (*shown)(const char *text);
} members[] = {
    {"key", NULL},
    {"unique", NULL},
    {"reason", NULL},
    {"failure", NULL},
    {"unreadable", NULL},
    {"gate", before_slash},
    {"list", before_key_of_lane},
    {"what", view_change_shown},
};

json_t *view_hidden(const char *name, const json_t *value)
{
    const char *text = json_string_value(value);
    char word[HIDDEN_CURSOR_SIZE];

    if (text && strcmp(name, "cursor") == 0) {
        view_hide_cursor(text, word);
        return json_string(word);
    }
    for (size_t i = 0; text && i < sizeof members / sizeof *members; i++)
        if (strcmp(members[i].name, name) == 0)
            return members[i].shown ? json_stringn(text, members[i].shown(text)) : json_null();
    return NULL;
}
