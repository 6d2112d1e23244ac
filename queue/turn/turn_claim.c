/* claim: the call, and the leases, losses and times of its answer. turn.h says what they are. */
#include "queue/turn/turn.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/reply.h"
#include "core/script/script.h"
#include "queue/turn/words.h"

static void add_done(struct args *a, const struct claim_call *call)
{
    args_add(a, call->done_type);
    for (int i = 0; i < call->done_count; i++)
        args_add_bytes(a, call->done[i].at, call->done[i].len);
    args_add_int(a, call->done_count);
}

/* Adds all of a call but the time. */
static void add_call(struct args *a, const struct claim_call *call, int64_t turn)
{
    char options[13] = "";

    if (call->held)
        strcat(options, "h");
    if (call->unknown_dead)
        strcat(options, "d");
    if (call->mark)
        strcat(options, "m");
    if (call->reserved)
        strcat(options, "r");
    if (call->alone)
        strcat(options, "a");
    if (call->wide)
        strcat(options, "w");
    if (call->early)
        strcat(options, "e");
    if (call->parked)
        strcat(options, "p");
    if (call->elsewhere)
        strcat(options, "b");
    if (call->told)
        strcat(options, "t");
    args_add(a, call->worker);
    args_add(a, call->group);
    args_add_int(a, turn);
    args_add_int(a, call->free);
    args_add_int(a, call->prefetch);
    args_add_int(a, call->chunk);
    args_add_int(a, call->duty_until_us);
    args_add_int(a, call->ahead_us);
    args_add_int(a, call->far);
    args_add(a, options);
    args_add(a, call->digest ? call->digest : "");
    args_add_int(a, call->queues.count);
    if (call->asked.count > 0) {
        args_extend(a, "/", 1);
        args_extend(a, call->known, strlen(call->known));
    }
    add_names(a, call->queues);
    add_names(a, call->asked);
    add_names(a, call->types);
}

/* Adds a claim that stands: its turn, then all else as one word, which is mostly the same in the next one. */
static void add_standing(struct args *a, const struct claim_call *call)
{
    struct args words = {0};
    size_t from = 0;

    add_call(&words, call, 0);
    args_add_int(a, call->turn);
    args_add(a, "");
    for (size_t i = 0; i < words.count; from = words.ends[i++]) {
        args_extend(a, words.bytes + from, words.ends[i] - from);
        args_extend(a, " ", 1);
    }
    a->failed |= words.failed;
    args_free(&words);
}

void claim_request(struct args *a, const char *prefix, int64_t now_us, const struct claim_call *call)
{
    if (call->standing) {
        script_begin(a, "stand", prefix, now_us);
        add_standing(a, call);
        return;
    }
    script_begin(a, call->done_count > 0 ? "turn" : "claim", prefix, now_us);
    add_call(a, call, call->turn);
    if (call->done_count > 0)
        add_done(a, call);
}

struct turn_replies turn_replies(const struct redisReply *reply)
{
    if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements < 2)
        return (struct turn_replies){reply, reply};
    if (reply->elements == 2)
        return (struct turn_replies){reply->element[0], reply->element[1]};
    return (struct turn_replies){reply->element[reply->elements - 1], reply};
}

/* Cuts the part of text up to the first such character, which is passed over; false: there is none. */
static bool cut(struct span *text, char at, struct span *part)
{
    const char *end = memchr(text->at, at, text->len);

    if (!end)
        return false;
    *part = (struct span){text->at, (size_t)(end - text->at)};
    *text = (struct span){end + 1, text->len - part->len - 1};
    return true;
}

/* Returns the number behind a mark in the head of a token; `absent` where there is no such mark. */
static int64_t number_in(struct span head, char mark, int64_t absent)
{
    const char *at = memchr(head.at, mark, head.len);

    return at ? strtoll(at + 1, NULL, 10) : absent;
}

/* Reads a token, "turn.index[@slot][*cost][+rules]/queue/type/key[~gate[,gate...]]". */
static bool read_token(struct span token, struct lease *lease)
{
    struct span rest = token, head, queue;

    if (!cut(&rest, '/', &head) || !cut(&rest, '/', &queue) || !cut(&rest, '/', &lease->type))
        return false;
    if (!cut(&rest, '~', &lease->key))
        lease->key = rest;
    lease->token = token;
    lease->slot_us = number_in(head, '@', 0);
    lease->cost = number_in(head, '*', 1);
    return true;
}

struct span lease_attr(struct span attrs, char letter)
{
    const char *at = attrs.at, *end = attrs.at + attrs.len;

    while (at < end) { /* at a comma */
        const char *next = memchr(at + 1, ',', (size_t)(end - at - 1));
        size_t len = (size_t)((next ? next : end) - at);

        if (len > 1 && at[1] == letter)
            return (struct span){at + 2, len - 2};
        at += len;
    }
    return (struct span){NULL, 0};
}

#define COUNT_MOST 1000000000 /* no job is run so often; one more still fits in an int */

static int64_t stamp_in(struct span attrs, char letter)
{
    struct span stamp = lease_attr(attrs, letter);

    return stamp.at ? stamp_read(stamp) : 0;
}

/* Takes all of an entry as the body. */
static void begin_entry(struct span entry, struct lease *lease)
{
    lease->attempts = lease->interrupted = lease->throttled = 0;
    lease->body = entry;
    lease->attrs = (struct span){"", 0};
    lease->enqueued_us = lease->since_us = 0;
}

/* Reads the usual head, which says nothing but when the job was enqueued. */
static void read_usual(struct span entry, int64_t enqueued_us, struct lease *lease)
{
    lease->body = (struct span){entry.at + STAMP_HEAD_LEN, entry.len - STAMP_HEAD_LEN};
    lease->enqueued_us = lease->since_us = enqueued_us;
}

bool lease_read_entry(struct span entry, struct lease *lease)
{
    int *numbers[] = {&lease->attempts, &lease->interrupted, &lease->throttled};
    const char *at = entry.at;
    char *end;
    long number;

    begin_entry(entry, lease);
    if (entry.len == 0 || *at != '@')
        return entry.len > 0;
    if (stamp_is_head(entry)) {
        read_usual(entry, stamp_read((struct span){at + 1, STAMP_LEN}), lease);
        return true;
    }
    for (int i = 0; i < 3; i++) {
        if (!isdigit((unsigned char)at[1]))
            return false;
        number = strtol(at + 1, &end, 10);
        if (number > COUNT_MOST)
            return false;
        *numbers[i] = (int)number;
        at = end;
        if (*at != ',' && (i < 2 || *at != ';'))
            return false;
    }
    lease->body = (struct span){at, entry.len - (size_t)(at - entry.at)};
    if (!cut(&lease->body, ';', &lease->attrs))
        return false;
    lease->enqueued_us = stamp_in(lease->attrs, 't');
    lease->since_us = stamp_in(lease->attrs, 'd');
    if (!lease->since_us)
        lease->since_us = lease->enqueued_us;
    return true;
}

int64_t entry_enqueued_us(struct span entry)
{
    struct lease lease;

    return lease_read_entry(entry, &lease) ? lease.enqueued_us : 0;
}

bool token_index(struct span token, size_t *at)
{
    const char *dot = memchr(token.at, '.', token.len);

    if (!dot || token.at + token.len - dot <= TOKEN_INDEX + 1)
        return false;
    *at = (size_t)(dot + 1 - token.at);
    switch (token.at[*at + TOKEN_INDEX]) {
    case '/':
    case '@':
    case '*':
    case '+':
        return true;
    default:
        return false;
    }
}

/* Makes room for n leases, and for `bytes` of tokens that the answer left out. */
static int make_lease_room(struct claim *claim, size_t n, size_t bytes, struct error *e)
{
    if (n > claim->lease_capacity) {
        struct lease *leases = realloc(claim->leases, n * sizeof *leases);

        if (!leases)
            return error_no_memory(e, "claim");
        claim->leases = leases;
        claim->lease_capacity = n;
    }
    if (bytes > claim->token_capacity) {
        char *tokens = realloc(claim->tokens, bytes);

        if (!tokens)
            return error_no_memory(e, "claim");
        claim->tokens = tokens;
        claim->token_capacity = bytes;
    }
    claim->lease_count = n;
    return 0;
}

static int unreadable(struct error *e)
{
    return error_set(e, WEIR_EINTERNAL, "claim: a lease that cannot be read; is another version at work?");
}

/* Passes over the usual head that was read last: jobs of a bulk share it. */
struct usual_head {
    const char *at;
    int64_t enqueued_us;
};

/* Reads the entry of a lease. */
static void read_entry(struct span entry, struct lease *lease, struct usual_head *last)
{
    /* with the bracket behind the head */
    if (last->at && entry.len > STAMP_HEAD_LEN && memcmp(entry.at, last->at, STAMP_HEAD_LEN + 1) == 0) {
        begin_entry(entry, lease);
        read_usual(entry, last->enqueued_us, lease);
        lease->usual = true;
        return;
    }
    /* of a foreign entry all is the body, and whoever reads that finds it wrong */
    if (!lease_read_entry(entry, lease))
        begin_entry(entry, lease);
    lease->usual = stamp_is_head(entry);
    if (lease->usual)
        *last = (struct usual_head){entry.at, lease->enqueued_us};
}

/* Reads n leases: token, entry, token, entry ... */
static int read_leases(struct redisReply *const *at, size_t n, struct claim *claim, struct error *e)
{
    struct usual_head head = {NULL, 0};
    int rc = make_lease_room(claim, n, 0, e);

    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (!read_token(span_of(at[2 * i]), &claim->leases[i]))
            return unreadable(e);
        read_entry(span_of(at[2 * i + 1]), &claim->leases[i], &head);
    }
    return rc;
}

/* A run of leases has the token of the first, and the entries. */
struct run {
    size_t count;
    struct span token;
    struct redisReply *const *entries;
};

/* Takes the next run: *counts says how many leases it has, its words are at *at, of the *left words that are left. false: they are no run. */
static bool next_run(const char **counts, struct redisReply *const **at, size_t *left, struct run *run)
{
    char *end;
    unsigned long count = strtoul(*counts, &end, 10);

    if (end == *counts || count < 1 || count >= *left)
        return false;
    *run = (struct run){count, span_of(**at), *at + 1};
    *counts = end;
    *at += count + 1;
    *left -= count + 1;
    return true;
}

/* Makes the token of a lease at `to` from that of the lease before it; index: where that has its index. false: it cannot be counted up. */
static bool follow(struct lease *lease, const struct lease *before, size_t index, char *to)
{
    memcpy(to, before->token.at, before->token.len);
    *lease = *before;
    lease->type.at = to + (before->type.at - before->token.at);
    lease->key.at = to + (before->key.at - before->token.at);
    lease->token.at = to;
    return stamp_next(to + index, TOKEN_INDEX);
}

/* Reads the leases of a run; *to: where the tokens go that were left out, behind which it is then. */
static bool read_run(const struct run *run, struct lease *leases, char **to, struct usual_head *head)
{
    size_t index;

    if (!read_token(run->token, leases) || !token_index(run->token, &index))
        return false;
    for (size_t i = 0; i < run->count; i++) {
        if (i > 0 && !follow(&leases[i], &leases[i - 1], index, *to))
            return false;
        *to += i > 0 ? run->token.len : 0;
        read_entry(span_of(run->entries[i]), &leases[i], head);
    }
    return true;
}

/* Reads packed leases: how many each run has; then the token of its first one, and the entries, of each. */
static int read_runs(const struct redisReply *list, struct claim *claim, struct error *e)
{
    size_t left = list->elements ? list->elements - 1 : 0, words = left, n = 0, bytes = 0;
    struct redisReply *const *at = words ? list->element + 1 : NULL;
    const char *counts = words ? span_of(list->element[0]).at : "";
    struct usual_head head = {NULL, 0};
    struct run run;
    char *to;

    for (; next_run(&counts, &at, &left, &run); bytes += (run.count - 1) * run.token.len)
        n += run.count;
    if (n == 0 || left > 0 || *counts)
        return unreadable(e);
    if (make_lease_room(claim, n, bytes, e) != 0)
        return e->status;
    to = claim->tokens;
    counts = span_of(list->element[0]).at;
    at = list->element + 1;
    left = words;
    for (size_t i = 0; next_run(&counts, &at, &left, &run); i += run.count)
        if (!read_run(&run, &claim->leases[i], &to, &head))
            return unreadable(e);
    return 0;
}

/* Takes the words of a list; none where it is no list. */
static const struct span *read_words(const struct redisReply *list, struct span **words, size_t *count)
{
    const struct span *first = *words;

    *count = list->elements;
    for (size_t i = 0; i < list->elements; i++)
        *(*words)++ = span_of(list->element[i]);
    return first;
}

/* Reads a loss, "limit thousandths since why lease". */
static bool read_loss(struct span text, struct loss *loss)
{
    struct span thousandths, since, why;

    if (!cut(&text, ' ', &loss->limit) || !cut(&text, ' ', &thousandths) || !cut(&text, ' ', &since) ||
        !cut(&text, ' ', &why) || why.len != 1 || text.len == 0 || !isdigit((unsigned char)*text.at))
        return false;
    loss->thousandths = strtoll(thousandths.at, NULL, 10);
    loss->since_us = strtoll(since.at, NULL, 10);
    loss->why = *why.at;
    loss->lease = strtoul(text.at, NULL, 10);
    return loss->thousandths > 0 && loss->thousandths <= REPLY_INT_MOST && loss->since_us >= 0 &&
           loss->since_us <= REPLY_INT_MOST;
}

static void read_losses(const struct redisReply *list, struct claim *claim)
{
    claim->loss_count = 0;
    for (size_t i = 0; i < list->elements && claim->loss_count < LOSSES_MOST; i++) {
        struct loss *loss = &claim->losses[claim->loss_count];

        if (read_loss(span_of(list->element[i]), loss) && loss->lease < claim->lease_count)
            claim->loss_count++;
    }
}

/* Makes room for the words of all lists. */
static int make_room(const struct redisReply *reply, struct claim *claim, struct error *e)
{
    size_t n = 0;

    for (size_t i = 3; i < reply->elements; i += 2)
        n += reply->element[i]->elements;
    if (n > claim->word_capacity) {
        struct span *words = realloc(claim->words, n * sizeof *words);

        if (!words)
            return error_no_memory(e, "claim");
        claim->words = words;
        claim->word_capacity = n;
    }
    return 0;
}

/* Reads what claim.lua says with a letter; one that is not known says nothing. words: where those of a list go. */
static void read_pair(struct claim *claim, char letter, const struct redisReply *value, struct span **words)
{
    switch (letter) {
    case 'n':
        claim->next_us = reply_int(value, -1);
        break;
    case 'l':
        claim->later_us = reply_int(value, -1);
        break;
    case 'd':
        claim->duty_until_us = reply_int(value, 0);
        break;
    case 'w':
        claim->look_us = reply_int(value, -1);
        break;
    case 'm':
        claim->more = true;
        break;
    case 's':
        claim->starved = true;
        break;
    case 'a':
        claim->alone = true;
        break;
    case 'j':
        claim->brief = true;
        break;
    case 'r':
        claim->limits = read_words(value, words, &claim->limit_count);
        break;
    case 'h':
        claim->held = read_words(value, words, &claim->held_count);
        break;
    case 'b':
        claim->broken = read_words(value, words, &claim->broken_count);
        break;
    case 'p':
        claim->paused = read_words(value, words, &claim->paused_count);
        break;
    case 'k':
        claim->faults = read_words(value, words, &claim->fault_count);
        break;
    case 'q':
        claim->dues = read_words(value, words, &claim->due_count);
        claim->told = true;
        break;
    case 'c':
        claim->causes = span_of(value);
        break;
    case 'o':
        read_losses(value, claim);
        break;
    case 'g':
        claim->crowd = (int)reply_int(value, 0);
        break;
    default:
        break;
    }
}

/* Empties a claim, and keeps its arrays. */
static void begin_claim(struct claim *claim)
{
    const struct claim before = *claim;

    *claim = (struct claim){.next_us = -1,
                            .later_us = -1,
                            .look_us = -1,
                            .leases = before.leases,
                            .lease_capacity = before.lease_capacity,
                            .tokens = before.tokens,
                            .token_capacity = before.token_capacity,
                            .words = before.words,
                            .word_capacity = before.word_capacity,
                            .causes = {"", 0}};
}

static bool is_letter(const struct redisReply *word, char letter)
{
    struct span text = span_of(word);

    return text.len == 1 && *text.at == letter;
}

int claim_reply(const struct redisReply *reply, struct claim *claim, struct error *e)
{
    struct span *words;
    int rc = reply_array(reply, 2, "claim", e);

    if (rc == 0)
        rc = reply_list(reply->element[1], "claim", e);
    if (rc == 0)
        rc = make_room(reply, claim, e);
    if (rc != 0)
        return rc;
    begin_claim(claim);
    claim->now_us = reply_int(reply->element[0], 0);
    if (reply->elements > 3 && is_letter(reply->element[2], 'u'))
        rc = read_runs(reply->element[3], claim, e);
    else
        rc = read_leases(reply->element[1]->element, reply->element[1]->elements / 2, claim, e);
    words = claim->words;
    for (size_t i = 2; rc == 0 && i + 1 < reply->elements; i += 2) {
        struct span letter = span_of(reply->element[i]);

        read_pair(claim, letter.len == 1 ? *letter.at : '\0', reply->element[i + 1], &words);
    }
    return rc;
}

bool claim_is_declined(const struct redisReply *reply)
{
    return reply && (reply->type == REDIS_REPLY_ERROR || reply->type == REDIS_REPLY_NIL);
}

void claim_free(struct claim *claim)
{
    free(claim->leases);
    free(claim->tokens);
    free(claim->words);
    memset(claim, 0, sizeof *claim);
}
