/* One script reads all keys; they are sorted by name, each is judged by the table of kinds, then what must
 * agree between keys is compared. The jobs found are counted for their type, and their ids sorted. */
#include "tests/invariants.h"

#include <ctype.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/job.h"

static const char snapshot_text[] =
    "local all = {}\n"
    "local read = {list = {'LRANGE', 0, -1}, zset = {'ZRANGE', 0, -1, 'WITHSCORES'}, hash = {'HGETALL'},\n"
    "              set = {'SMEMBERS'}}\n"
    "for _, key in ipairs(redis.call('KEYS', KEYS[1] .. '*')) do\n"
    "  local kind = redis.call('TYPE', key).ok\n"
    "  local how = read[kind]\n"
    "  all[#all + 1] = key:sub(#KEYS[1] + 1)\n"
    "  all[#all + 1] = kind\n"
    "  all[#all + 1] = how and redis.call(how[1], key, unpack(how, 2)) or {}\n"
    "end\n"
    "local t = redis.call('TIME')\n"
    "return {t[1] .. string.format('%06d', t[2]), all}\n";

struct item {
    const char *name, *kind;
    struct redisReply **at;
    size_t count;
};

/* Jobs of a type that were found, and what is counted of it. */
enum counter { ENQUEUED, PULLED, PARKED, SERVED, DONE, RETRIED, DEAD, BACK, SCHEDULED, COUNTERS };
static const char *const counter_names[] = {"enqueued", "pulled", "parked", "served",   "done",
                                            "retried",  "dead",   "back",   "scheduled"};
struct tally {
    struct span type;
    int64_t queued, in_lanes, leased, to_queue, to_lane;
    int64_t counted[COUNTERS];
};

struct found {
    struct span id;
    const char *where;
};

struct check {
    struct item *items;
    size_t item_count;
    struct tally *tallies;
    size_t tally_count, last;
    struct found *jobs;
    size_t job_count, job_capacity;
    int64_t now_us, lease_us;
    struct invariants seen;
    char why[512];
};

static bool broken(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool broken(struct check *c, const char *fmt, ...)
{
    va_list rest;

    va_start(rest, fmt);
    if (!c->why[0])
        vsnprintf(c->why, sizeof c->why, fmt, rest);
    va_end(rest);
    return false;
}

static struct span span_of(const struct redisReply *r)
{
    return (struct span){r->str, r->len};
}

static bool equal(struct span a, struct span b)
{
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

static struct span text_span(const char *text)
{
    return (struct span){text, strlen(text)};
}

static int item_order(const void *a, const void *b)
{
    return strcmp(((const struct item *)a)->name, ((const struct item *)b)->name);
}

static const struct item *item_named(const struct check *c, const char *name)
{
    struct item wanted = {.name = name};

    return bsearch(&wanted, c->items, c->item_count, sizeof wanted, item_order);
}

/* Is member in the set, hash or sorted set of that name? step: 1 for sets, 2 for the others. */
static bool has_member(const struct check *c, const char *name, struct span member, size_t step)
{
    const struct item *item = item_named(c, name);

    for (size_t i = 0; item && i < item->count; i += step)
        if (equal(span_of(item->at[i]), member))
            return true;
    return false;
}

static struct tally *tally_of(struct check *c, struct span type)
{
    for (size_t i = 0; i < c->tally_count; i++) {
        size_t at = (c->last + i) % c->tally_count;

        if (equal(c->tallies[at].type, type))
            return &c->tallies[c->last = at];
    }
    c->tallies = realloc(c->tallies, (c->tally_count + 1) * sizeof *c->tallies);
    c->tallies[c->tally_count] = (struct tally){.type = type};
    return &c->tallies[c->last = c->tally_count++];
}

/* ---- What jobs look like on their way */

/* Reads len bytes from *at up to the separator; false when it is not there. */
static bool cut(struct span *text, char separator, struct span *word)
{
    const char *end = memchr(text->at, separator, text->len);

    if (!end)
        return false;
    *word = (struct span){text->at, (size_t)(end - text->at)};
    text->len -= word->len + 1;
    text->at = end + 1;
    return true;
}

static bool is_number(struct span s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!isdigit((unsigned char)s.at[i]))
            return false;
    return s.len > 0 && s.len < 19;
}

static bool is_name(struct span s)
{
    return name_is_valid(s.at, s.len);
}

/* "queue/type/" */
static bool read_lane(struct span text, struct span *queue, struct span *type)
{
    return cut(&text, '/', queue) && cut(&text, '/', type) && is_name(*queue) && is_name(*type) &&
           text.len == 0;
}

/* "turn.index[@slot]/queue/type/" */
static bool read_token(struct span text, struct span *queue, struct span *type)
{
    struct span head, turn, index;

    if (!cut(&text, '/', &head) || !read_lane(text, queue, type) || !cut(&head, '.', &turn) ||
        !is_number(turn))
        return false;
    return cut(&head, '@', &index) ? is_number(head) : head.len > 0;
}

/* The body in an entry; len 0 when its header cannot be read. */
static struct span body_of(struct span entry)
{
    struct span number;
    static const char ends[] = ",,;";

    if (entry.len == 0 || *entry.at != '@')
        return entry;
    entry.at++;
    entry.len--;
    for (int i = 0; i < 3; i++)
        if (!cut(&entry, ends[i], &number) || !is_number(number))
            return (struct span){"", 0};
    return entry;
}

/* Notes that a job was found; *type is filled in when its body can be read. */
static bool find_job(struct check *c, const char *where, struct span entry, struct span *type)
{
    struct span body = body_of(entry);
    struct job_view view;
    struct error ignored;

    *type = (struct span){NULL, 0};
    if (body.len == 0 && entry.len > 0)
        return broken(c, "%s: an entry whose header cannot be read: %.80s", where, entry.at);
    if (job_read(body.at, body.len, &view, &ignored) != 0)
        return true;
    *type = view.type;
    if (!view.id.at)
        return true;
    if (c->job_count == c->job_capacity) {
        c->job_capacity = c->job_capacity ? 2 * c->job_capacity : 256;
        c->jobs = realloc(c->jobs, c->job_capacity * sizeof *c->jobs);
    }
    c->jobs[c->job_count++] = (struct found){view.id, where};
    return true;
}

/* ---- One key of each kind. rest: its name after the kind's beginning. */

static bool check_queue(struct check *c, const struct item *item, const char *rest)
{
    struct span type;

    if (!is_name(text_span(rest)))
        return broken(c, "%s: its queue is no name", item->name);
    for (size_t i = 0; i < item->count; i++) {
        if (!find_job(c, item->name, span_of(item->at[i]), &type))
            return false;
        if (type.at)
            tally_of(c, type)->queued++;
        else
            c->seen.unreadable++;
        c->seen.queued++;
    }
    return true;
}

static bool check_lane(struct check *c, const struct item *item, const char *rest)
{
    struct span queue, type, found;
    char wake[300], held[300];
    bool waits, aside;

    if (!read_lane(text_span(rest), &queue, &type))
        return broken(c, "%s: not of the form queue/type/", item->name);
    snprintf(wake, sizeof wake, "wake:%.*s", (int)queue.len, queue.at);
    snprintf(held, sizeof held, "held:%.*s", (int)queue.len, queue.at);
    waits = has_member(c, wake, type, 2);
    aside = has_member(c, held, type, 2);
    if (waits == aside)
        return broken(c, "%s holds %zu jobs and its type stands in %s of wake and held", item->name,
                      item->count, waits ? "both" : "none");
    for (size_t i = 0; i < item->count; i++) {
        if (!find_job(c, item->name, span_of(item->at[i]), &found))
            return false;
        if (found.at && !equal(found, type))
            return broken(c, "%s: a job of type %.*s", item->name, (int)found.len, found.at);
    }
    tally_of(c, type)->in_lanes += (int64_t)item->count;
    c->seen.parked += (int64_t)item->count;
    return true;
}

/* wake, held: each type has a lane that is not empty. */
static bool check_waits(struct check *c, const struct item *item, const char *rest)
{
    char lane[300];

    for (size_t i = 0; i < item->count; i += 2) {
        snprintf(lane, sizeof lane, "lane:%s/%s/", rest, item->at[i]->str);
        if (!item_named(c, lane))
            return broken(c, "%s has %s, whose lane is empty", item->name, item->at[i]->str);
    }
    return true;
}

static bool check_active(struct check *c, const struct item *item, const char *rest)
{
    struct span queue, type, found;

    if (!has_member(c, item->name, text_span("@"), 2))
        return broken(c, "%s has no @", item->name);
    if (!has_member(c, "workers", text_span(rest), 2))
        return broken(c, "%s: a worker without a deadline", item->name);
    for (size_t i = 0; i + 1 < item->count; i += 2) {
        if (equal(span_of(item->at[i]), text_span("@")))
            continue;
        if (!read_token(span_of(item->at[i]), &queue, &type))
            return broken(c, "%s: token %s cannot be read", item->name, item->at[i]->str);
        if (!find_job(c, item->name, span_of(item->at[i + 1]), &found))
            return false;
        if (found.at && !equal(found, type))
            return broken(c, "%s: token %s leases a job of type %.*s", item->name, item->at[i]->str,
                          (int)found.len, found.at);
        tally_of(c, type)->leased++;
        c->seen.leased++;
    }
    return true;
}

static bool check_workers(struct check *c, const struct item *item, const char *rest)
{
    char active[300];

    (void)rest;
    for (size_t i = 0; i + 1 < item->count; i += 2) {
        snprintf(active, sizeof active, "active:%s", item->at[i]->str);
        if (!item_named(c, active))
            return broken(c, "workers: %s has nothing of its own", item->at[i]->str);
        if (c->lease_us && atoll(item->at[i + 1]->str) > c->now_us + c->lease_us)
            return broken(c, "workers: the deadline of %s, %s, is more than a lease after %" PRId64,
                          item->at[i]->str, item->at[i + 1]->str, c->now_us);
    }
    return true;
}

/* "q <tag> <queue> <type>\n<body>" or "l <tag> <queue>/<type>/\n<entry>" */
static bool check_record(struct check *c, struct span record)
{
    struct span header, kind, tag, queue, type, found;

    if (!cut(&record, '\n', &header) || !cut(&header, ' ', &kind) || kind.len != 1 ||
        !cut(&header, ' ', &tag))
        return broken(c, "later: a record whose header cannot be read: %.80s", record.at);
    if (*kind.at == 'q') {
        if (!cut(&header, ' ', &queue) || !is_name(queue) || !is_name(header))
            return broken(c, "later: a scheduled record that names no queue and type");
        tally_of(c, header)->to_queue++;
    } else {
        if (*kind.at != 'l' || !read_lane(header, &queue, &type))
            return broken(c, "later: a record that is neither scheduled nor retried");
        tally_of(c, type)->to_lane++;
    }
    return find_job(c, "later", record, &found);
}

static bool check_later(struct check *c, const struct item *item, const char *rest)
{
    (void)rest;
    for (size_t i = 0; i < item->count; i += 2)
        if (!check_record(c, span_of(item->at[i])))
            return false;
    c->seen.later = (int64_t)item->count / 2;
    return true;
}

/* "<tag> <lane> <reason>\n<entry>" */
static bool check_dead(struct check *c, const struct item *item, const char *rest)
{
    (void)rest;
    for (size_t i = 0; i < item->count; i += 2) {
        struct span record = span_of(item->at[i]), header, tag, lane, ignored;

        if (!cut(&record, '\n', &header) || !cut(&header, ' ', &tag) || !cut(&header, ' ', &lane) ||
            header.len == 0)
            return broken(c, "dead: a record whose header cannot be read: %.80s", item->at[i]->str);
        if (lane.len > 2 && lane.at[lane.len - 2] != '/' && !find_job(c, "dead", record, &ignored))
            return false;
        c->seen.dead++;
    }
    return true;
}

static bool check_stats(struct check *c, const struct item *item, const char *rest)
{
    struct tally *tally = tally_of(c, text_span(rest));

    for (size_t i = 0; i + 1 < item->count; i += 2)
        for (int k = 0; k < COUNTERS; k++)
            if (strcmp(item->at[i]->str, counter_names[k]) == 0)
                tally->counted[k] = atoll(item->at[i + 1]->str);
    return true;
}

static bool check_nothing(struct check *c, const struct item *item, const char *rest)
{
    (void)c, (void)item, (void)rest;
    return true;
}

static const struct {
    const char *name; /* the whole, or the beginning when it ends with ':' */
    const char *kind;
    bool (*check)(struct check *c, const struct item *item, const char *rest);
} kinds[] = {
    {"queue:", "list", check_queue},   {"lane:", "list", check_lane},      {"wake:", "zset", check_waits},
    {"held:", "zset", check_waits},    {"gate:", "string", check_nothing}, {"limits", "hash", check_nothing},
    {"types", "hash", check_nothing},  {"queues", "set", check_nothing},   {"later", "zset", check_later},
    {"active:", "hash", check_active}, {"workers", "zset", check_workers}, {"reap", "string", check_nothing},
    {"duty", "hash", check_nothing},   {"bell:", "list", check_nothing},   {"spare:", "list", check_nothing},
    {"dead", "zset", check_dead},      {"batch:", "hash", check_nothing},  {"id:", "string", check_nothing},
    {"stats:", "hash", check_stats},
};

static bool check_item(struct check *c, const struct item *item)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t len = strlen(kinds[i].name);
        bool family = kinds[i].name[len - 1] == ':';

        if (family ? strncmp(item->name, kinds[i].name, len) != 0 : strcmp(item->name, kinds[i].name) != 0)
            continue;
        if (strcmp(item->kind, kinds[i].kind) != 0)
            return broken(c, "%s is a %s, not a %s", item->name, item->kind, kinds[i].kind);
        return kinds[i].check(c, item, item->name + len);
    }
    return broken(c, "%s: a key that nobody knows", item->name);
}

/* ---- What must agree */

static bool check_tally(struct check *c, const struct tally *t)
{
    const int64_t *n = t->counted;
    int64_t runs = n[PULLED] + n[SERVED] - n[DONE] - n[RETRIED] - n[DEAD] - n[BACK];
    int64_t waits = n[PARKED] + n[BACK] + n[RETRIED] - n[SERVED];
    int64_t foreign = t->queued - (n[ENQUEUED] - n[PULLED] - n[PARKED]);
    const char *type = t->type.at;
    int len = (int)t->type.len;

    if (runs != t->leased)
        return broken(c, "%.*s: %" PRId64 " run by the counters, %" PRId64 " are leased", len, type, runs,
                      t->leased);
    if (waits != t->in_lanes + t->to_lane)
        return broken(
            c, "%.*s: %" PRId64 " wait by the counters, %" PRId64 " are in lanes, %" PRId64 " return to them",
            len, type, waits, t->in_lanes, t->to_lane);
    if (n[SCHEDULED] != t->to_queue + t->to_lane)
        return broken(c, "%.*s: scheduled is %" PRId64 ", later holds %" PRId64, len, type, n[SCHEDULED],
                      t->to_queue + t->to_lane);
    c->seen.foreign += foreign;
    return true;
}

static int found_order(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    size_t len = x->id.len < y->id.len ? x->id.len : y->id.len;
    int order = memcmp(x->id.at, y->id.at, len);

    return order ? order : x->id.len < y->id.len ? -1 : x->id.len > y->id.len;
}

static void sort_jobs(struct check *c)
{
    if (c->job_count > 0)
        qsort(c->jobs, c->job_count, sizeof *c->jobs, found_order);
}

static bool check_unique(struct check *c)
{
    sort_jobs(c);
    for (size_t i = 1; i < c->job_count; i++)
        if (equal(c->jobs[i - 1].id, c->jobs[i].id))
            return broken(c, "job %.*s is in %s and in %s", (int)c->jobs[i].id.len, c->jobs[i].id.at,
                          c->jobs[i - 1].where, c->jobs[i].where);
    return true;
}

static bool check_all(struct check *c)
{
    for (size_t i = 0; i < c->item_count; i++)
        if (!check_item(c, &c->items[i]))
            return false;
    for (size_t i = 0; i < c->tally_count; i++)
        if (!check_tally(c, &c->tallies[i]))
            return false;
    return check_unique(c);
}

static struct redisReply *read_all(struct redis *r, const char *prefix, struct error *e)
{
    struct redisReply *reply = NULL;
    struct args a;

    args_init(&a);
    args_add(&a, "EVAL");
    args_add(&a, snapshot_text);
    args_add(&a, "1");
    args_add(&a, prefix);
    if (redis_call(r, &a, &reply, NULL, e) != 0)
        reply = NULL;
    args_free(&a);
    return reply;
}

static void sort_items(struct check *c, const struct redisReply *all)
{
    c->item_count = all->elements / 3;
    c->items = calloc(c->item_count + 1, sizeof *c->items);
    for (size_t i = 0; i < c->item_count; i++) {
        struct redisReply **at = all->element + 3 * i;

        c->items[i] = (struct item){at[0]->str, at[1]->str, at[2]->element, at[2]->elements};
    }
    qsort(c->items, c->item_count, sizeof *c->items, item_order);
}

const char *invariants_broken(struct redis *r, const char *prefix, int64_t now_us, int64_t lease_us,
                              struct invariants *seen)
{
    static char why[512];
    struct check c = {.now_us = now_us, .lease_us = lease_us};
    struct error e;
    struct redisReply *reply = read_all(r, prefix, &e);
    bool holds;

    if (!reply) {
        snprintf(why, sizeof why, "cannot be read: %s", e.text);
        return why;
    }
    if (now_us < 0)
        c.now_us = atoll(reply->element[0]->str);
    sort_items(&c, reply->element[1]);
    holds = check_all(&c);
    snprintf(why, sizeof why, "%s", c.why);
    if (seen)
        *seen = c.seen;
    free(c.items);
    free(c.tallies);
    free(c.jobs);
    freeReplyObject(reply);
    return holds ? NULL : why;
}

static void find_in(struct check *c, const struct item *item)
{
    struct span type;
    bool pairs = strcmp(item->kind, "hash") == 0, records = strcmp(item->kind, "zset") == 0;

    for (size_t i = pairs; i < item->count; i += 1 + (pairs || records)) {
        struct span entry = span_of(item->at[i]), header;

        size_t before = c->job_count;

        if (records && !cut(&entry, '\n', &header))
            continue;
        find_job(c, item->name, entry, &type);
        if (c->job_count == before && records &&
            cut(&entry, '\n', &header)) /* a record of later that is dead */
            find_job(c, item->name, entry, &type);
    }
}

char *invariants_ids(struct redis *r, const char *prefix)
{
    struct check c = {.now_us = 0};
    struct error e;
    struct redisReply *reply = read_all(r, prefix, &e);
    char *ids = NULL;
    size_t size;
    FILE *f = open_memstream(&ids, &size);

    if (reply) {
        sort_items(&c, reply->element[1]);
        for (size_t i = 0; i < c.item_count; i++)
            find_in(&c, &c.items[i]);
        sort_jobs(&c);
        for (size_t i = 0; i < c.job_count; i++)
            fprintf(f, "%.*s\n", (int)c.jobs[i].id.len, c.jobs[i].id.at);
    }
    fclose(f);
    free(c.items);
    free(c.jobs);
    freeReplyObject(reply);
    return ids;
}
