/* One script reads all keys; they are sorted by name, and those that hold jobs or what workers remember are read
 * by the table of families. The jobs found are counted for their type, and their ids sorted. */
#include "tests/invariants.h"

#include <ctype.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/answer.h"
#include "queue/doctor/doctor.h"

/* All keys, {name, kind, what it holds}; of the logs of what people did, which nobody checks, the first. */
static const char snapshot_text[] =
    "local read = {list = {'LRANGE', 0, -1}, zset = {'ZRANGE', 0, -1, 'WITHSCORES'}, hash = {'HGETALL'},\n"
    "              set = {'SMEMBERS'}, string = {'MGET'}}\n"
    "local all, t = {}, redis.call('TIME')\n"
    "for _, key in ipairs(redis.call('KEYS', KEYS[1] .. '*')) do\n"
    "  local kind, name = redis.call('TYPE', key).ok, key:sub(#KEYS[1] + 1)\n"
    "  local how = (name == 'changes' or name == 'acts') and kind == 'list' and {'LRANGE', 0, 0} or "
    "read[kind]\n"
    "  local n = #all\n"
    "  all[n + 1], all[n + 2] = name, kind\n"
    "  all[n + 3] = how and redis.call(how[1], key, unpack(how, 2)) or {}\n"
    "end\n"
    "return {t[1] .. string.format('%06d', t[2]), all}\n";

/* Jobs of a type that were found, and what is counted of it. */
enum counter {
    ENQUEUED,
    PULLED,
    PARKED,
    SERVED,
    DONE,
    RETRIED,
    DEAD,
    BACK,
    SCHEDULED,
    RETURNED,
    CANCELLED,
    DROPPED,
    UNSTARTED,
    COUNTERS
};
static const char *const counter_names[] = {"enqueued",  "pulled",  "parked",   "served",    "done",
                                            "retried",   "dead",    "back",     "scheduled", "returned",
                                            "cancelled", "dropped", "unstarted"};
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
    const struct snapshot *all;
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

static int item_order(const void *a, const void *b)
{
    return strcmp(((const struct item *)a)->name, ((const struct item *)b)->name);
}

const struct item *snapshot_item(const struct snapshot *all, const char *name)
{
    struct item wanted = {.name = name};

    return bsearch(&wanted, all->items, all->count, sizeof wanted, item_order);
}

const char *item_value(const struct item *item, const char *field)
{
    for (size_t i = 0; item && i + 1 < item->count; i += 2)
        if (strcmp(item->at[i]->str, field) == 0)
            return item->at[i + 1]->str;
    return NULL;
}

static bool has_field(const struct check *c, const char *name, const char *field)
{
    return item_value(snapshot_item(c->all, name), field) != NULL;
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

/* Those of its jobs that are to run alone stand in lanes of "queue!". */
static bool is_alone(struct span queue)
{
    return queue.len > 0 && queue.at[queue.len - 1] == '!';
}

static bool is_queue(struct span s)
{
    s.len -= is_alone(s);
    return is_name(s);
}

/* "queue/type/key" */
static bool read_lane(struct span text, struct span *queue, struct span *type, struct span *key)
{
    if (!cut(&text, '/', queue) || !cut(&text, '/', type))
        return false;
    *key = text;
    return is_queue(*queue) && is_name(*type) && (key->len == 0 || is_name(*key));
}

/* A number at the end of head, behind mark; -1: there is none, or it is none. */
static int64_t cut_number(struct span *head, char mark, int64_t missing)
{
    const char *at = memchr(head->at, mark, head->len);
    struct span number;

    if (!at)
        return missing;
    number = (struct span){at + 1, (size_t)(head->at + head->len - at - 1)};
    head->len = (size_t)(at - head->at);
    return is_number(number) ? strtoll(number.at, NULL, 10) : -1;
}

/* limit#index or limit#index/key; limit#pause and type#paused, which are no gates, but open as one */
static bool is_gate(struct span text)
{
    struct span limit, index;

    if (!cut(&text, '#', &limit) || !is_name(limit))
        return false;
    if (equal(text, span_str("pause")) || equal(text, span_str("paused")))
        return true;
    return cut(&text, '/', &index) ? is_number(index) && (text.len == 0 || is_name(text)) : is_number(text);
}

bool next_name(struct span *list, struct span *name)
{
    if (list->len == 0)
        return false;
    if (!cut(list, ',', name)) {
        *name = *list;
        list->len = 0;
    }
    return true;
}

bool token_read(struct span text, struct token *token)
{
    struct span head, turn, lane, list, gate;
    const char *mark;

    *token = (struct token){.gates = {"", 0}};
    if (!cut(&text, '/', &head))
        return false;
    if (cut(&text, '~', &lane)) {
        token->gates = text;
        text = lane;
        if (token->gates.len == 0)
            return false;
    }
    for (list = token->gates; next_name(&list, &gate);)
        if (!is_gate(gate))
            return false;
    if ((mark = memchr(head.at, '+', head.len)))
        head.len = (size_t)(mark - head.at);
    token->cost = cut_number(&head, '*', 1);
    token->slot_us = cut_number(&head, '@', 0);
    return read_lane(text, &token->queue, &token->type, &token->key) && cut(&head, '.', &turn) &&
           is_number(turn) && head.len > 0 && token->cost >= 0 && token->slot_us >= 0;
}

/* "-" or "ticket,until_us,node" */
static bool read_hold(struct span text, struct gate_state *state)
{
    struct span ticket, until;

    if (text.len == 1 && *text.at == '-')
        return true;
    if (!cut(&text, ',', &ticket) || !cut(&text, ',', &until) || !is_number(until) || text.len == 0)
        return false;
    state->hold_ticket = strtod(ticket.at, NULL);
    state->hold_until_us = strtoll(until.at, NULL, 10);
    state->hold_node = text;
    return true;
}

bool gate_state_read(struct span text, struct gate_state *state)
{
    struct span wrote, pause, hold, adapt;

    *state = (struct gate_state){.wrote_us = 0};
    if (!cut(&text, ' ', &wrote) || !cut(&text, ' ', &pause) || !cut(&text, ' ', &hold) ||
        !cut(&text, ' ', &adapt) || !is_number(wrote) || !is_number(pause) || !read_hold(hold, state))
        return false;
    state->wrote_us = strtoll(wrote.at, NULL, 10);
    state->pause_until_us = strtoll(pause.at, NULL, 10);
    state->adapted = !(adapt.len == 1 && *adapt.at == '-');
    if (!cut(&text, ' ', &state->rule)) {
        state->rule = text;
        text.len = 0;
    }
    state->words = text;
    return state->rule.len > 0;
}

/* The body in an entry; len 0 when its header cannot be read. */
static struct span body_of(struct span entry)
{
    struct span head, number;

    if (entry.len == 0 || *entry.at != '@')
        return entry;
    if (entry.len > 8 && entry.at[8] == '{' && memchr(entry.at, ',', 8) == NULL)
        return (struct span){entry.at + 8, entry.len - 8};
    if (!cut(&entry, ';', &head))
        return (struct span){"", 0};
    head.at++;
    head.len--;
    for (int i = 0; i < 3; i++) { /* attrs may follow the third */
        if (!cut(&head, ',', &number)) {
            number = head;
            head.len = 0;
        }
        if (!is_number(number))
            return (struct span){"", 0};
    }
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

    if (!is_name(span_str(rest)))
        return broken(c, "%s: its queue is not a valid name", item->name);
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

/* "<queue>/<type>/<key>\n<entry>" */
static bool check_aside(struct check *c, const struct item *item, const char *rest)
{
    (void)rest;
    for (size_t i = 0; i < item->count; i++) {
        struct span record = span_of(item->at[i]), lane, queue, type, key, found;

        if (!cut(&record, '\n', &lane) || !read_lane(lane, &queue, &type, &key) || is_alone(queue))
            return broken(c, "%s: a record that names no lane", item->name);
        if (!find_job(c, item->name, record, &found))
            return false;
    }
    return true;
}

static bool check_lane(struct check *c, const struct item *item, const char *rest)
{
    struct span queue, type, key, found;

    if (!read_lane(span_str(rest), &queue, &type, &key))
        return broken(c, "%s: not of the form queue/type/key", item->name);
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

/* "<limit>#*": all gates of a limit. */
static bool is_all_gates(const char *text)
{
    size_t len = strlen(text);

    return len > 2 && strcmp(text + len - 2, "#*") == 0 && is_name((struct span){text, len - 2});
}

/* at:<gate>: queues, and lines of callers, maybe such as have nobody there any more. */
static bool check_at(struct check *c, const struct item *item, const char *rest)
{
    if (!is_gate(span_str(rest)) && strcmp(rest, "*") != 0 && !is_all_gates(rest))
        return broken(c, "%s: not of the form limit#index/key", item->name);
    for (size_t i = 0; i < item->count; i++)
        if (*item->at[i]->str != '!' && !is_queue(span_of(item->at[i])))
            return broken(c, "%s: %s is no queue, and no line", item->name, item->at[i]->str);
    return true;
}

/* alone: workers, and queues of lanes that are to run alone. */
static bool check_alone(struct check *c, const struct item *item, const char *rest)
{
    (void)rest;
    for (size_t i = 0; i < item->count; i += 2)
        if (is_alone(span_of(item->at[i])) ? strcmp(item->at[i + 1]->str, "0") != 0
                                           : !has_field(c, "workers", item->at[i]->str))
            return broken(c, "alone: %s, %s", item->at[i]->str, item->at[i + 1]->str);
    return true;
}

/* credit:<queue>/<type>: starts of a key's share. */
static bool check_credit(struct check *c, const struct item *item, const char *rest)
{
    (void)rest;
    for (size_t i = 0; i < item->count; i += 2)
        if (atoll(item->at[i + 1]->str) < 1 || atoll(item->at[i + 1]->str) > 1000)
            return broken(c, "%s: %s has had %s", item->name, item->at[i]->str, item->at[i + 1]->str);
    return true;
}

static bool check_gate(struct check *c, const struct item *item, const char *rest)
{
    struct gate_state state;

    if (!is_gate(span_str(rest)))
        return broken(c, "%s: not of the form limit#index/key", item->name);
    if (!gate_state_read(span_of(item->at[0]), &state))
        return broken(c, "%s: its state cannot be read: %s", item->name, item->at[0]->str);
    return true;
}

static bool check_active(struct check *c, const struct item *item, const char *rest)
{
    struct token token;
    struct span found, gate;
    char name[400];

    (void)rest;
    for (size_t i = 0; i + 1 < item->count; i += 2) {
        if (equal(span_of(item->at[i]), span_str("@")))
            continue;
        if (!token_read(span_of(item->at[i]), &token))
            return broken(c, "%s: token %s cannot be read", item->name, item->at[i]->str);
        if (!find_job(c, item->name, span_of(item->at[i + 1]), &found))
            return false;
        if (found.at && !equal(found, token.type))
            return broken(c, "%s: token %s leases a job of type %.*s", item->name, item->at[i]->str,
                          (int)found.len, found.at);
        while (next_name(&token.gates, &gate)) {
            snprintf(name, sizeof name, "gate:%.*s", (int)gate.len, gate.at);
            if (!snapshot_item(c->all, name))
                return broken(c, "%s took %s, which has no state", item->at[i]->str, name);
        }
        if (is_alone(token.queue) && item->count > 4)
            return broken(c, "%s: %s is to run alone", item->name, item->at[i]->str);
        tally_of(c, token.type)->leased++;
        c->seen.leased++;
    }
    return true;
}

static bool check_workers(struct check *c, const struct item *item, const char *rest)
{
    (void)rest;
    for (size_t i = 0; i + 1 < item->count; i += 2)
        if (c->lease_us && atoll(item->at[i + 1]->str) > c->now_us + c->lease_us)
            return broken(c, "workers: the deadline of %s, %s, is more than a lease after %" PRId64,
                          item->at[i]->str, item->at[i + 1]->str, c->now_us);
    return true;
}

/* "q <tag> <queue> <type>\n<body>" or "l <tag> <queue>/<type>/<key>\n<entry>"; of a schedule "s <name>\n" */
static bool check_record(struct check *c, struct span record)
{
    struct span header, kind, tag, queue, type, key, found;

    if (record.len > 3 && memcmp(record.at, "s ", 2) == 0 && record.at[record.len - 1] == '\n')
        return snapshot_item(c->all, "schedules") || broken(c, "later: %.80s is of no schedule", record.at);
    if (!cut(&record, '\n', &header) || !cut(&header, ' ', &kind) || kind.len != 1 ||
        !cut(&header, ' ', &tag))
        return broken(c, "later: a record whose header cannot be read: %.80s", record.at);
    if (*kind.at == 'q') {
        if (!cut(&header, ' ', &queue) || !is_name(queue) || !is_name(header))
            return broken(c, "later: a scheduled record that names no queue and type");
        tally_of(c, header)->to_queue++;
    } else {
        if (*kind.at != 'l' || !read_lane(header, &queue, &type, &key) || is_alone(queue))
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
            header.len == 0 || memchr(lane.at, '!', lane.len))
            return broken(c, "dead: a record whose header cannot be read: %.80s", item->at[i]->str);
        if (lane.len > 2 && !find_job(c, "dead", record, &ignored))
            return false;
        c->seen.dead++;
    }
    return true;
}

static bool check_stats(struct check *c, const struct item *item, const char *rest)
{
    struct tally *tally = tally_of(c, span_str(rest));

    for (size_t i = 0; i + 1 < item->count; i += 2)
        for (int k = 0; k < COUNTERS; k++)
            if (strcmp(item->at[i]->str, counter_names[k]) == 0)
                tally->counted[k] = atoll(item->at[i + 1]->str);
    return true;
}

/* What it counts is there, unless that is still being counted. */
static bool check_dead_bytes(struct check *c, const struct item *item, const char *rest)
{
    const struct item *dead = snapshot_item(c->all, "dead");
    const char *bytes = item_value(item, "bytes");
    long long found = 0;

    (void)rest;
    for (size_t i = 0; dead && i < dead->count; i += 2)
        found += (long long)dead->at[i]->len;
    if (dead && !item_value(item, "score") && (!bytes || atoll(bytes) != found))
        return broken(c, "dead_bytes: %s, and there are %lld", bytes ? bytes : "nothing", found);
    return true;
}

/* The rules of keys are known to claims, and can be read. */
static bool check_keys(struct check *c, const struct item *item, const char *rest)
{
    const struct item *limits = snapshot_item(c->all, "key_rules");
    bool listed = false;

    for (size_t i = 0; limits && i < limits->count; i++)
        listed = listed || strcmp(limits->at[i]->str, rest) == 0;
    if (!listed)
        return broken(c, "keys:%s: key_rules does not list it", rest);
    for (size_t i = 0; i + 1 < item->count; i += 2)
        if (item->at[i + 1]->len < 20 || !strchr("-x", item->at[i + 1]->str[18]))
            return broken(c, "keys:%s: rules that cannot be read: %s", rest, item->at[i + 1]->str);
    return true;
}

static const struct {
    const char *name; /* the whole, or the beginning when it ends with ':' */
    const char *kind;
    bool (*check)(struct check *c, const struct item *item, const char *rest);
} families[] = {
    {"queue:", "list", check_queue},    {"lane:", "list", check_lane},
    {"aside:", "list", check_aside},    {"later", "zset", check_later},
    {"dead", "zset", check_dead},       {"active:", "hash", check_active},
    {"workers", "zset", check_workers}, {"alone", "zset", check_alone},
    {"credit:", "hash", check_credit},  {"gate:", "string", check_gate},
    {"at:", "set", check_at},           {"stats:", "hash", check_stats},
    {"keys:", "hash", check_keys},      {"dead_bytes", "hash", check_dead_bytes},
};

static bool check_item(struct check *c, const struct item *item)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        size_t len = strlen(families[i].name);
        bool family = families[i].name[len - 1] == ':';

        if (strncmp(item->name, families[i].name, len + !family) == 0 &&
            strcmp(item->kind, families[i].kind) == 0)
            return families[i].check(c, item, item->name + len);
    }
    return true;
}

/* ---- What must agree */

static bool check_tally(struct check *c, const struct tally *t)
{
    const int64_t *n = t->counted;
    int64_t runs = n[PULLED] + n[SERVED] - n[DONE] - n[RETRIED] - n[DEAD] - n[BACK];
    int64_t waits = n[PARKED] + n[BACK] + n[RETRIED] - n[SERVED];
    int64_t foreign = t->queued - (n[ENQUEUED] - n[PULLED] - n[PARKED] - n[DROPPED]);
    int64_t gone = waits - t->in_lanes -
                   t->to_lane; /* cancelled, from a lane, a lease or `later`, or set aside from a lane */
    const char *type = t->type.at;
    int len = (int)t->type.len;

    if (runs != t->leased)
        return broken(c, "%.*s: %" PRId64 " run by the counters, %" PRId64 " are leased", len, type, runs,
                      t->leased);
    if (gone < 0 || gone > n[CANCELLED] + n[UNSTARTED])
        return broken(
            c, "%.*s: %" PRId64 " wait by the counters, %" PRId64 " are in lanes, %" PRId64 " return to them",
            len, type, waits, t->in_lanes, t->to_lane);
    if (n[PARKED] + n[RETURNED] - n[SERVED] != t->in_lanes)
        return broken(c, "%.*s: %" PRId64 " are parked by the counters, %" PRId64 " are in lanes", len, type,
                      n[PARKED] + n[RETURNED] - n[SERVED], t->in_lanes);
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
    for (size_t i = 0; i < c->all->count; i++)
        if (!check_item(c, &c->all->items[i]))
            return false;
    for (size_t i = 0; i < c->tally_count; i++)
        if (!check_tally(c, &c->tallies[i]))
            return false;
    return check_unique(c);
}

static void free_check(struct check *c)
{
    free(c->tallies);
    free(c->jobs);
}

#define READS_MOST 6 /* a busy machine may take longer for all keys than one request waits */

static struct redisReply *read_all(struct redis *r, const char *prefix, struct error *e)
{
    struct redisReply *reply = NULL;
    struct args a = {0};
    int reads = 0, rc;

    args_add(&a, "EVAL");
    args_add(&a, snapshot_text);
    args_add(&a, "1");
    args_add(&a, prefix);
    do
        rc = redis_call(r, &a, &reply, NULL, e);
    while (rc != 0 && redis_is_silent(r) && ++reads < READS_MOST);
    args_free(&a);
    return rc == 0 ? reply : NULL;
}

struct snapshot *snapshot_read(struct redis *r, const char *prefix, struct error *e)
{
    struct redisReply *reply = read_all(r, prefix, e), *keys;
    struct snapshot *all;

    if (!reply)
        return NULL;
    keys = reply->element[1];
    all = calloc(1, sizeof *all);
    *all = (struct snapshot){.reply = reply,
                             .count = keys->elements / 3,
                             .items = calloc(keys->elements / 3 + 1, sizeof *all->items),
                             .now_us = atoll(reply->element[0]->str)};
    for (size_t i = 0; i < all->count; i++) {
        struct redisReply **at = keys->element + 3 * i;

        all->items[i] = (struct item){at[0]->str, at[1]->str, at[2]->element, at[2]->elements};
    }
    qsort(all->items, all->count, sizeof *all->items, item_order);
    return all;
}

void snapshot_free(struct snapshot *all)
{
    if (!all)
        return;
    free(all->items);
    freeReplyObject(all->reply);
    free(all);
}

const char *snapshot_broken(const struct snapshot *all, int64_t now_us, int64_t lease_us,
                            struct invariants *seen)
{
    static char why[512];
    struct check c = {.all = all, .now_us = now_us < 0 ? all->now_us : now_us, .lease_us = lease_us};
    bool holds = check_all(&c);

    snprintf(why, sizeof why, "%s", c.why);
    if (seen)
        *seen = c.seen;
    free_check(&c);
    return holds ? NULL : why;
}

/* Is what the doctor has found an invariant? Warnings are where nothing of others may be. What others push is
 * registered when a worker looks, and what they write as a limit stays. */
static bool is_broken(const json_t *check)
{
    const char *name = answer_text(check, "name"), *state = answer_text(check, "state");
    bool is_strict = strcmp(name, "keys") == 0 || strcmp(name, "places") == 0;
    bool is_foreign = strcmp(name, "limits") == 0 ||
                      (strcmp(name, "registries") == 0 && !strstr(answer_text(check, "text"), "alone"));

    if (strcmp(name, "structures") == 0 || is_foreign)
        return false;
    return strcmp(state, "wrong") == 0 || (is_strict && strcmp(state, "ok") != 0);
}

const char *doctor_broken(struct redis *r, const char *prefix, int64_t now_us)
{
    static char why[512];
    struct weir w = {.redis = r};
    struct doctor d = {.checks = NULL};
    json_t *check;
    size_t i;
    int status;

    snprintf(w.prefix, sizeof w.prefix, "%s", prefix);
    status = doctor_structures(&w, now_us, false, &d);
    snprintf(why, sizeof why, "%s", status ? w.error.text : "");
    json_array_foreach(d.checks, i, check)
        if (!*why && is_broken(check))
            snprintf(why, sizeof why, "doctor: %s: %s", answer_text(check, "name"),
                     answer_text(check, "text"));
    doctor_free(&d);
    return *why ? why : NULL;
}

const char *invariants_broken(struct redis *r, const char *prefix, int64_t now_us, int64_t lease_us,
                              struct invariants *seen)
{
    static char why[600];
    struct error e;
    struct snapshot *all = snapshot_read(r, prefix, &e);
    const char *broken_one;

    if (!all) {
        snprintf(why, sizeof why, "cannot be read: %s", e.text);
        return why;
    }
    broken_one = snapshot_broken(all, now_us, lease_us, seen);
    snapshot_free(all);
    return broken_one ? broken_one : doctor_broken(r, prefix, now_us);
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
    struct error e;
    struct snapshot *all = snapshot_read(r, prefix, &e);
    struct check c = {.all = all};
    char *ids = NULL;
    size_t size;
    FILE *f = open_memstream(&ids, &size);

    for (size_t i = 0; all && i < all->count; i++)
        find_in(&c, &all->items[i]);
    sort_jobs(&c);
    for (size_t i = 0; i < c.job_count; i++)
        fprintf(f, "%.*s\n", (int)c.jobs[i].id.len, c.jobs[i].id.at);
    fclose(f);
    free_check(&c);
    snapshot_free(all);
    return ids;
}
