#include "queue/inspect/find_job.h"

#include <inttypes.h>
#include <string.h>

#include "core/client/pages.h"
#include "core/clock.h"
#include "queue/inspect/job_list.h"
#include "queue/job/json.h"
#include "queue/status/waits.h"
#include "throttle/key.h"
#include "throttle/limit.h"

#define PAGE_MOST "500" /* entries, 2 ms in the middle of a million; fewer where they are large */
#define LOOKS 2
#define NEAR_PAGES 2 /* from where a job was seen on; beyond them it is not sought there */
#define ENDS 1       /* a walk */

struct search {
    struct weir *w;
    const char *id;
    const char *words[3]; /* of each call */
    int pages;            /* that may still be taken; below 0: all */
    int64_t until_us;     /* clock_mono_us(); 0: it may take any time */
    int64_t looked_at;
    bool known;         /* it was enqueued */
    json_t *job, *next; /* next: a cursor, when the time was over */
};

/* ---- What its body says */

struct span found_body(const json_t *job)
{
    const json_t *entry = json_object_get(job, "entry");
    int64_t at = answer_int_or(job, "body_at", 1) - 1, len = (int64_t)json_string_length(entry);

    if (!json_is_string(entry) || at < 0 || at > len)
        return (struct span){"", 0};
    return (struct span){json_string_value(entry) + at, (size_t)(len - at)};
}

bool found_in_line(const json_t *job)
{
    const char *state = answer_text(job, "state");

    return strcmp(state, "waiting") == 0 || strcmp(state, "parked") == 0 || strcmp(state, "held") == 0;
}

/* A name that a body has as that member, though a worker cannot read it. */
static struct span name_in(struct span body, const char *member)
{
    struct span value = json_find(body.at, body.len, member);

    if (value.len < 2 || *value.at != '"' || !name_is_valid(value.at + 1, value.len - 2))
        return (struct span){NULL, 0};
    return (struct span){value.at + 1, value.len - 2};
}

static void set_word(json_t *job, const char *member, struct span word)
{
    if (word.at)
        json_object_set_new(job, member, json_stringn_nocheck(word.at, word.len));
}

/* As its producer wrote it, unless its place knows it by another one. */
static void read_key(json_t *job, struct span key)
{
    const char *known = answer_text(job, "key");
    char made[LIMIT_NAME_SIZE];

    key_make(key.at ? key.at : "", key.len, made);
    if (key.at && (!*known || strcmp(known, made) == 0))
        set_word(job, "key", key);
}

static void read_body(json_t *job)
{
    struct span body = found_body(job);
    struct job_view view = {.max_attempts = JOB_MAX_ATTEMPTS};
    struct error why;

    if (job_read(body.at, body.len, &view, &why) < 0) {
        json_object_set_new(job, "unreadable", json_stringn_nocheck(why.text, strlen(why.text)));
        view = (struct job_view){.type = name_in(body, "type"), .max_attempts = JOB_MAX_ATTEMPTS};
    }
    if (!*answer_text(job, "type"))
        set_word(job, "type", view.type);
    read_key(job, view.key);
    json_object_set_new(job, "max_attempts", json_integer(view.max_attempts));
    if (view.timeout_us > 0)
        json_object_set_new(job, "timeout", json_integer(view.timeout_us));
}

bool found_ends(const json_t *job)
{
    return json_object_get(job, "unreadable") || json_object_get(job, "cancelled_at") ||
           json_object_get(job, "batch_cancelled_at");
}

/* What somebody has to do before it starts. */
static json_t *halt_of(const json_t *job)
{
    static const char *const halts[][2] = {{"batch", "batch_paused"}, {"queue", "queue_paused"}};

    for (size_t i = 0; json_object_get(job, "list") && i < sizeof halts / sizeof *halts; i++)
        if (json_object_get(job, halts[i][1]))
            return waits_pause(halts[i][0], answer_text(job, halts[i][0]), json_object_get(job, halts[i][1]));
    if (strcmp(answer_text(job, "state"), "held") == 0)
        return json_pack("{s:O, s:O}", "type", json_object_get(job, "type"), "queue",
                         json_object_get(job, "queue"));
    return NULL;
}

static void read_wait(json_t *job)
{
    json_t *halt = found_ends(job) ? NULL : halt_of(job);

    if (halt)
        json_object_set_new(job, "waits_for", halt);
    if (json_object_get(job, "start"))
        json_object_set_new(job, "at_the_earliest", json_true());
}

/* ---- Going through */

static int take_page(const json_t *page, void *arg)
{
    struct search *s = arg;

    s->job = json_incref(json_object_get(page, "job"));
    s->looked_at += answer_int(page, "looked_at");
    s->known |= json_is_true(json_object_get(page, "known"));
    if (s->job)
        json_object_set(s->job, "now", json_object_get(page, "now"));
    else if (s->until_us && clock_mono_us() >= s->until_us)
        s->next = job_cursor(s->w, page, s->looked_at);
    s->pages -= s->pages > 0;
    return s->job || s->next || s->pages == 0 ? ENDS : 0;
}

static struct pages pages_of(struct search *s, int64_t now_us)
{
    s->words[0] = s->id;
    s->words[1] = PAGE_MOST;
    return (struct pages){.w = s->w,
                          .script = "find_job",
                          .now_us = now_us,
                          .arg = s,
                          .words = s->words,
                          .take = take_page,
                          .rests = true};
}

static int check_id(struct weir *w, const char *id)
{
    if (name_is_valid(id, strlen(id)))
        return 0;
    return error_set(&w->error, WEIR_EINPUT,
                     "job '%.60s': not a valid id; weir enqueue prints one, 1 to 128 of A-Z a-z 0-9 _ . -",
                     id);
}

int find_none(struct weir *w, const char *id)
{
    return error_set(&w->error, WEIR_ENOTFOUND,
                     "job %s: no such job here: it is done, or was never enqueued; check the id, "
                     "--namespace and --redis",
                     id);
}

static int none(const struct search *s)
{
    if (!s->known)
        return find_none(s->w, s->id);
    return error_set(&s->w->error, WEIR_ENOTFOUND,
                     "job %s: no such job here any more: it was enqueued, and is done, cancelled or "
                     "removed; weir worker --keep keeps jobs that are done",
                     s->id);
}

/* Walks so often at most. */
static int find(const struct pages *pages, struct search *s, int looks, json_t **job)
{
    int status = check_id(pages->w, s->id);

    for (int look = 0; look < looks && status == 0 && !s->job; look++)
        status = pages_walk(pages);
    status = status > 0 ? 0 : status;
    if (status == 0 && !s->job && !s->next)
        status = none(s);
    if (status == 0 && s->job) {
        json_object_set_new(s->job, "id", json_string(s->id));
        read_body(s->job);
        read_wait(s->job);
    } else {
        json_decref(s->job);
        s->job = NULL;
    }
    *job = s->job;
    return status;
}

int find_job(struct weir *w, int64_t now_us, const char *id, json_t **job)
{
    struct search s = {.w = w, .id = id, .pages = -1};
    const struct pages pages = pages_of(&s, now_us);

    return find(&pages, &s, LOOKS, job);
}

/* Looks from that place on; pages: as in struct search. */
static int find_behind(struct weir *w, int64_t now_us, const char *id, const char *at, const char *from,
                       int most_pages, json_t **job)
{
    struct search s = {.w = w, .id = id, .pages = most_pages};
    struct pages pages = pages_of(&s, now_us);
    json_t *place = json_pack("[s, s]", at, from);
    int status;

    pages.here = true;
    pages.place = place;
    status = find(&pages, &s, 1, job);
    json_decref(place);
    return status;
}

int find_job_at(struct weir *w, int64_t now_us, const char *id, const char *list, int64_t passed,
                json_t **job)
{
    char from[24];

    snprintf(from, sizeof from, "%" PRId64, passed);
    return find_behind(w, now_us, id, list, from, -1, job);
}

/* ---- Where it was seen */

/* True when a job could stand there: anybody may have written the place. */
static bool is_place(const struct find_place *place)
{
    static const char *const kinds[] = {"queue:", "lane:", "aside:", "active:", "later", "dead", "finished"};
    bool known = false;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        known = known || strncmp(place->at, kinds[i], strlen(kinds[i])) == 0;
    return known && place->from[strspn(place->from, "0123456789:")] == '\0';
}

int find_job_near(struct weir *w, int64_t now_us, const char *id, const struct find_place *place,
                  json_t **job)
{
    int count = 0, status = find_none(w, id);

    *job = NULL;
    if (is_place(place))
        (void)!client_learn(w, &count);
    for (int p = 0; p < count && status < 0; p++)
        if ((status = client_at(w, p)) == 0)
            status = find_behind(w, now_us, id, place->at, place->from, NEAR_PAGES, job);
    return status;
}

/* ---- A part at a time */

/* What a call says that ended before the walk. */
static int end_early(const struct search *s, int64_t now_us, json_t **job)
{
    struct job_search search = {.count = 0};
    int64_t of = 0;
    int status = job_search_add(&search, "id", s->id, &s->w->error);

    if (status == 0)
        status = job_list_measure(s->w, now_us, &search, &of);
    if (status == 0)
        *job = json_pack("{s:s, s:I, s:I, s:O}", "id", s->id, "looked_at", (json_int_t)s->looked_at, "of",
                         (json_int_t)(of > s->looked_at ? of : s->looked_at), "next", s->next);
    if (status == 0 && !*job)
        status =
            error_set(&s->w->error, WEIR_EINTERNAL, "job %s: out of memory; free some and try again", s->id);
    return status;
}

int find_job_part(struct weir *w, int64_t now_us, const char *id, const char *cursor, int64_t until_us,
                  json_t **job)
{
    static const struct find_place ended = {.at = "finished"};
    struct search s = {.w = w, .id = id, .pages = -1, .until_us = until_us};
    struct pages pages = pages_of(&s, now_us);
    json_t *place = NULL;
    int status = check_id(w, id);

    *job = NULL;
    if (status == 0)
        status = job_cursor_read(cursor, &pages.at, &place, &s.looked_at, &w->error);
    pages.place = place;
    if (status == 0 && !(cursor && find_job_near(w, now_us, id, &ended, job) == 0))
        status = job_cursor_judge(find(&pages, &s, 1, job), cursor, &w->error);
    if (status == WEIR_ENOTFOUND && cursor && !s.known)
        error_set(
            &w->error, status,
            "job %s: no such job was met: it is done, was never enqueued, or has moved meanwhile; look again "
            "without the cursor",
            id);
    if (status == 0 && s.next)
        status = end_early(&s, now_us, job);
    json_decref(place);
    json_decref(s.next);
    return status;
}

bool found_too_early(const json_t *job)
{
    return json_object_get(job, "next");
}
