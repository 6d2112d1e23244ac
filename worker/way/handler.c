#include "worker/way/handler.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/decimal.h"
#include "core/words.h"
#include "worker/way/trace.h"
#include "worker/way/way.h"

/* ---- The table */

void handlers_free(struct handlers *h)
{
    struct runner *runner;

    if (!h)
        return;
    handlers_free(h->next);
    while ((runner = h->runners)) {
        h->runners = runner->next;
        runner->way->free(runner->state);
        free(runner);
    }
    for (int i = 0; i < h->word_count; i++)
        if (pattern_is(h->words[i]->type))
            free(h->words[i]);
    tdestroy(h->by_type, free);
    free(h->words);
    free(h->at);
    free(h->types);
    free(h->resting);
    free(h->patterns);
    free(h);
}

struct names handlers_types(const struct handlers *h)
{
    return (struct names){h->types, h->count};
}

struct names handlers_patterns(const struct handlers *h)
{
    return (struct names){h->patterns, h->pattern_count};
}

static bool is_called(const struct handler *handler, struct span type)
{
    return span_is(span_str(handler->type), type);
}

static int compare_types(const void *a, const void *b)
{
    return strcmp(((const struct handler *)a)->type, ((const struct handler *)b)->type);
}

struct handler *handlers_find(const struct handlers *h, struct span type)
{
    struct handler key, **found;

    if (type.len >= sizeof key.type || memchr(type.at, '\0', type.len))
        return NULL;
    memcpy(key.type, type.at, type.len);
    key.type[type.len] = '\0';
    found = tfind(&key, &h->by_type, compare_types);
    return found ? *found : NULL;
}

struct handler *handlers_word(const struct handlers *h, struct span type)
{
    struct handler *longest = NULL;

    for (int i = 0; i < h->word_count; i++) {
        struct handler *word = h->words[i];

        if (is_called(word, type))
            return word;
        if (pattern_serves(word->type, type) && (!longest || strlen(word->type) > strlen(longest->type)))
            longest = word;
    }
    return longest;
}

/* Checks the words of a new runner. */
static int check_words(const struct handlers *h, const char *words, struct error *e)
{
    for (const char *at = words; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const struct span word = {at, strcspn(at, ",")};
        const struct handler *other;

        if (!word_is_valid(word.at, word.len))
            return error_set(e, WEIR_EUSAGE,
                             "handler: '%.*s' is not a valid type; use 1 to 128 of A-Z a-z 0-9 _ . -, or a "
                             "pattern with one * at "
                             "its end, as mail.* or *, and a comma between types",
                             (int)(word.len < 64 ? word.len : 64), word.at);
        for (const char *before = words; before < at; before = strchr(before, ',') + 1)
            if (strcspn(before, ",") == word.len && memcmp(before, at, word.len) == 0)
                return error_set(e, WEIR_EUSAGE, "handler: type %.*s stands twice in %.200s", (int)word.len,
                                 at, words);
        other = handlers_word(h, word);
        if (other && is_called(other, word))
            return error_set(e, WEIR_EUSAGE, "handler: type %.*s has a handler already; leave one out",
                             (int)word.len, at);
    }
    return 0;
}

/* Returns a list with room for one more than count, which grows at each power of two. NULL: out of memory. */
static void *with_room(void *list, int count, size_t size)
{
    return count & (count - 1) ? list : realloc(list, (count ? 2 * (size_t)count : 1) * size);
}

static bool put_name(const char ***list, int count, const char *name)
{
    const char **grown = with_room(*list, count, sizeof *grown);

    if (grown)
        (*list = grown)[count] = name;
    return grown;
}

static bool put_handler(struct handler ***list, int count, struct handler *handler)
{
    struct handler **grown = with_room(*list, count, sizeof *grown);

    if (grown)
        (*list = grown)[count] = handler;
    return grown;
}

/* Makes the handler of a word, with the options of another one. NULL: out of memory. */
static struct handler *new_handler(const struct handler *as, struct span word)
{
    struct handler *handler = calloc(1, sizeof *handler);

    if (!handler)
        return NULL;
    *handler = (struct handler){.runner = as->runner,
                                .timeout_us = as->timeout_us,
                                .keep_us = as->keep_us,
                                .backoff_first_us = as->backoff_first_us,
                                .backoff_most_us = as->backoff_most_us};
    memcpy(handler->type, word.at, word.len);
    return handler;
}

/* Gives a type a handler as another one. NULL: out of memory. */
static struct handler *add_type(struct handlers *h, const struct handler *as, struct span type)
{
    struct handler *handler = new_handler(as, type);

    if (!handler || !put_handler(&h->at, h->count, handler) ||
        !put_name(&h->types, h->count, handler->type) || !tsearch(handler, &h->by_type, compare_types)) {
        free(handler);
        return NULL;
    }
    handler->number = h->count++;
    return handler;
}

struct handler *handlers_take(struct handlers *h, struct span type)
{
    struct handler *handler = handlers_find(h, type);
    const struct handler *word = handler ? NULL : handlers_word(h, type);

    return word && name_is_valid(type.at, type.len) ? add_type(h, word, type) : handler;
}

static struct handler *add_pattern(struct handlers *h, const struct handler *as, struct span word)
{
    struct handler *handler = new_handler(as, word);

    if (!handler || !put_name(&h->patterns, h->pattern_count, handler->type)) {
        free(handler);
        return NULL;
    }
    h->pattern_count++;
    return handler;
}

struct handler *handlers_add_word(struct handlers *h, struct runner *runner, struct span word)
{
    const struct handler as = {.runner = runner};
    struct handler *handler = NULL;

    if (put_handler(&h->words, h->word_count, NULL) && put_name(&h->resting, h->word_count, NULL))
        handler = word.at[word.len - 1] == '*' ? add_pattern(h, &as, word) : add_type(h, &as, word);
    if (!handler)
        return NULL;
    h->words[h->word_count++] = handler;
    runner->count++;
    return handler;
}

int handlers_add(struct handlers *h, const char *words, const struct way *way, void *state, struct error *e)
{
    size_t size = strlen(words) + 1;
    int status = check_words(h, words, e);
    struct runner *runner = status == 0 ? calloc(1, sizeof *runner + size) : NULL;

    if (!runner) {
        way->free(state);
        return status != 0 ? status : error_set(e, WEIR_EINTERNAL, "handler: out of memory");
    }
    runner->next = h->runners;
    runner->way = way;
    runner->state = state;
    memcpy(runner->types, words, size);
    h->runners = runner;
    for (const char *at = words; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!handlers_add_word(h, runner, (struct span){at, strcspn(at, ",")}))
            return error_set(e, WEIR_EINTERNAL, "handler: out of memory");
    return 0;
}

int handlers_keep(struct handlers *to, const struct handlers *from, struct error *e)
{
    for (int i = 0; i < from->word_count; i++) {
        const struct handler *kept = from->words[i], *other;

        if (!kept->runner->way->inside)
            continue;
        other = handlers_word(to, span_str(kept->type));
        if (other && is_called(other, span_str(kept->type)))
            return error_set(e, WEIR_EUSAGE, "handler: type %s is that of a loaded function; leave it out",
                             kept->type);
        if (!handlers_add_word(to, kept->runner, span_str(kept->type)))
            return error_set(e, WEIR_EINTERNAL, "handler: out of memory");
        kept->runner->count--; /* the word takes the place of the kept one */
    }
    return 0;
}

static void rest_unheard(struct worker *w, int types)
{
    (void)w, (void)types;
}

int handlers_retire(struct handlers *from, struct handlers *to)
{
    int rested = 0;

    for (int i = 0; i < from->count; i++) {
        struct handler *now = handlers_take(to, span_str(from->at[i]->type));

        if (now)
            memcpy(now->ended, from->at[i]->ended, sizeof now->ended);
    }
    for (struct runner *r, **at = &from->runners; (r = *at);) {
        if (r->way->inside) {
            *at = r->next;
            r->next = to->runners;
            to->runners = r;
            continue;
        }
        rested += runner_rests(r) ? r->count : 0;
        rest_close(r);
        r->host.on_rest = rest_unheard;
        if (r->way->stop)
            r->way->stop(r);
        at = &r->next;
    }
    return rested;
}

static bool has_ended(const struct handlers *h)
{
    for (int i = 0; i < h->count; i++)
        if (atomic_load(&h->at[i]->tasks) > 0)
            return false;
    for (const struct runner *r = h->runners; r; r = r->next)
        if (r->way->lives && r->way->lives(r))
            return false;
    return true;
}

void handlers_free_ended(struct handlers **list)
{
    for (struct handlers *h; (h = *list);) {
        if (!has_ended(h)) {
            list = &h->next;
            continue;
        }
        *list = h->next;
        h->next = NULL;
        for (struct runner *r = h->runners; r; r = r->next)
            runner_close(r);
        handlers_free(h);
    }
}

/* ---- Commands */

static bool is_file(const char *path)
{
    struct stat found;

    return stat(path, &found) == 0 && S_ISREG(found.st_mode);
}

static bool is_program(const char *path)
{
    return is_file(path) && access(path, X_OK) == 0;
}

/* True when there is such a program, by its path or in $PATH. */
static bool can_run(const char *program)
{
    const char *path = getenv("PATH");
    char file[4096];

    if (strchr(program, '/'))
        return is_program(program);
    while (path && *path) {
        size_t len = strcspn(path, ":");

        snprintf(file, sizeof file, "%.*s/%s", (int)len, path, program);
        if (is_program(file))
            return true;
        path += len + (path[len] == ':');
    }
    return false;
}

static void refuse(const char *type, const char *program, struct error *e)
{
    if (strchr(program, '/') && is_file(program))
        error_set(e, WEIR_ECONFIG, "handler %s: %s: not executable; chmod +x it", type, program);
    else
        error_set(e, WEIR_ECONFIG, "handler %s: %s: no such program; name one in $PATH or by its path", type,
                  program);
}

char **command_split(const char *type, const char *command, struct error *e)
{
    size_t size = strlen(command) + 1, most = size / 2 + 1;
    char **argv = malloc((most + 1) * sizeof *argv + size), sign;

    if (!argv) {
        error_set(e, WEIR_EINTERNAL, "handler: out of memory");
        return NULL;
    }
    sign = words_split(command, (char *)(argv + most + 1), argv, most);
    if (sign)
        error_set(e, WEIR_EUSAGE, "handler %.64s: " WORDS_FOR_SHELL, type, sign);
    else if (!argv[0])
        error_set(e, WEIR_EUSAGE, "handler: no command given for type %.64s; use TYPE=COMMAND", type);
    else if (!can_run(argv[0]))
        refuse(type, argv[0], e);
    else
        return argv;
    free(argv);
    return NULL;
}

/* ---- Running one */

bool lease_is_over(const struct conditions *conditions)
{
    return clock_boot_us() >= atomic_load(&conditions->lease_end_us);
}

/* The worker and body.lua may read JSON differently: a job whose id or type they do not agree on is not run.
 * The key is not compared: that of the lease may be a value in args, or a hash, depending on the limits of
 * that time. */
static bool is_readable(struct task *task)
{
    struct job_view *view = &task->view;
    struct error e;

    task->back = BACK_WRONG_JOB;
    if (job_read(task->body.at, task->body.len, view, &e) != 0) {
        *view = (struct job_view){.type = {NULL, 0}};
        task_finish(task, END_DEAD, -1, e.text);
        return false;
    }
    if (!view->id.at || !is_called(task->handler, view->type)) {
        task_finish(task, END_DEAD, -1, "unreadable: its id or type is not what Redis read");
        return false;
    }
    task->back = BACK_NOT_BEGUN;
    return true;
}

/* True when the slot of a job is over. Others have begun since, so the job goes back and takes another slot. */
static bool is_late(struct task *task)
{
    if (!task->late_us || clock_mono_us() <= task->late_us)
        return false;
    task->back = BACK_LATE;
    atomic_fetch_add(&task->conditions->late, 1);
    return true;
}

int handler_take_late(struct conditions *conditions)
{
    return atomic_exchange(&conditions->late, 0);
}

bool task_call(struct task *task)
{
    struct conditions *conditions = task->conditions;

    task->timeout_us = task->view.timeout_us ? task->view.timeout_us : task->handler->timeout_us;
    atomic_store(&task->begun_us, clock_mono_us());
    if (atomic_load(&task->asked) != ASKED_NOTHING || lease_is_over(conditions) || is_late(task)) {
        atomic_store(&task->begun_us, 0);
        task_finish(task, END_BACK, 0, NULL);
        return false;
    }
    if (conditions->trace)
        trace_start(conditions->trace, task);
    return true;
}

void task_uncall(struct task *task)
{
    atomic_store(&task->begun_us, 0);
    task->back = BACK_NO_HANDLER;
    task_finish(task, END_BACK, 0, NULL);
}

void task_unable(struct task *task, const char *why)
{
    task_uncall(task);
    task_finish(task, END_BACK, 0, why);
    task->unable = true;
}

static _Thread_local struct task *current;

struct task *handler_current(void)
{
    return current;
}

void runner_log(enum log_level level, const struct runner *runner, const char *fmt, ...)
{
    const struct log_field type = {"type", runner->types, strlen(runner->types), false};
    char text[2048];
    va_list args;

    va_start(args, fmt);
    decimal_vprint(text, sizeof text, fmt, args);
    va_end(args);
    log_fields(level, &type, 1, "%s", text);
}

int runner_open(struct runner *runner, const struct way_host *host, struct error *e)
{
    runner->host = *host;
    rest_open(runner);
    return runner->way->open ? runner->way->open(runner, e) : 0;
}

void runner_close(struct runner *runner)
{
    if (!runner->host.loop)
        return;
    rest_close(runner);
    if (runner->way->close)
        runner->way->close(runner);
}

void handler_run(struct task *task)
{
    if (!is_readable(task))
        return;
    if (task->start_us > 0)
        clock_sleep_until(task->start_us);
    current = task;
    task->handler->runner->way->run(task);
    current = NULL;
    if (task->conditions->trace && atomic_load(&task->begun_us))
        trace_end(task->conditions->trace, task);
}

void handler_start(struct task *task)
{
    if (!is_readable(task)) {
        task_ended(task);
        return;
    }
    current = task;
    task->handler->runner->way->start(task);
    current = NULL;
}

void task_ended(struct task *task)
{
    task->handler->runner->host.on_ended(task);
}

void handler_hear_end(const struct task *task)
{
    if (!task->unable || runner_rests(task->handler->runner))
        return;
    task_log(LOG_LEVEL_ERROR, task, "%s; its jobs are given back",
             task->reason ? task->reason : "out of memory");
    runner_rest(task->handler->runner, REST_START_MOST_S);
}
