#include "tests/play_words.h"

#include <ctype.h>
#include <inttypes.h>

#include "queue/enqueue/enqueue.h"
#include "tests/client.h"
#include "tests/scene.h"

#define LEASES_NAMED 24 /* of one claim; of more their number is said */

/* ---- Words and times */

int64_t time_of(const char *word)
{
    static const struct {
        const char *unit;
        double us;
    } units[] = {{"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"m", 60e6}, {"h", 3600e6}, {"d", 86400e6}, {"", 1}};
    char *end;
    double number = strtod(word, &end);

    for (size_t i = 0; i < COUNT(units); i++)
        if (strcmp(end, units[i].unit) == 0)
            return (int64_t)(number * units[i].us + (number < 0 ? -0.5 : 0.5));
    fail_msg("%s: is no time", word);
    return 0;
}

const char *time_text(int64_t us)
{
    char *text = textf("%.6f", (double)us / 1e6);
    size_t len = strlen(text);

    while (text[len - 1] == '0')
        len--;
    if (text[len - 1] == '.')
        len--;
    return textf("%.*ss", (int)len, text);
}

/* A word with times "T+1s" as numbers, \n as a newline and % as the prefix. */
static const char *read_word(const char *word)
{
    char *text = textf("%s%s", word[0] == '%' ? PREFIX : "", word + (word[0] == '%')), *at;

    while ((at = strstr(text, "T+")) || (at = strstr(text, "T-"))) {
        size_t len = 2 + strspn(at + 2, "0123456789.");
        const char *time = textf("%.*ss", (int)len - 1, at + 1);

        assert_int_equal(at[len], 's');
        text = textf("%.*s%" PRId64 "%s", (int)(at - text), text, BEGIN_US + time_of(time), at + len + 1);
    }
    while ((at = strstr(text, "\\n")))
        text = textf("%.*s\n%s", (int)(at - text), text, at + 2);
    return text;
}

void put_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        size_t digits = strspn(text, "0123456789");
        int64_t at_us = digits == 16 ? strtoll(text, NULL, 10) - BEGIN_US : 0;

        if (digits == 16 && llabs(at_us) < 400 * DAY_US) {
            fprintf(out, "T%s%s", at_us < 0 ? "" : "+", time_text(at_us));
            text += 15;
        } else if (digits > 0) {
            fprintf(out, "%.*s", (int)digits, text);
            text += digits - 1;
        } else if (*text == '\n')
            fputs("\\n", out);
        else
            fputc(*text, out);
    }
}

static void put_reply(FILE *out, const struct redisReply *reply)
{
    if (reply->type == REDIS_REPLY_INTEGER)
        put_text(out, textf("%lld", reply->integer));
    else if (reply->type != REDIS_REPLY_ARRAY)
        put_text(out, reply->str ? unstamped(textf("%s", reply->str)) : "nil");
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        fputs(i ? " | " : "", out);
        put_reply(out, reply->element[i]);
    }
}

/* Cuts a step into its words; a last one that is JSON, or quoted, may have blanks. */
static int split_words(const char *line, const char *list[WORDS_MOST])
{
    char *rest = textf("%s", line);
    int count = 0;

    for (rest += strspn(rest, " "); *rest && count < WORDS_MOST - 1; rest += strspn(rest, " ")) {
        bool quoted = *rest == '\'';
        char *word = rest + quoted;

        rest = word + (*word == '{' && !quoted ? strlen(word) : strcspn(word, quoted ? "'" : " "));
        if (*rest)
            *rest++ = '\0';
        list[count++] = read_word(word);
    }
    for (int i = count; i < WORDS_MOST; i++)
        list[i] = "";
    return count;
}

/* ---- Jobs by their ids */

static struct leased {
    char id[64], token[200];
} leased[4096]; /* the last ones */
static size_t leased_count;

/* An id that no job had is a token itself. */
static struct span token_of(const char *id)
{
    for (size_t i = leased_count; i-- > 0;)
        if (strcmp(leased[i].id, id) == 0)
            return span_str(leased[i].token);
    return span_str(id);
}

/* By which scenes name it: its id, or how its token begins. */
static const char *id_of(const struct lease *lease)
{
    static const char mark[] = "\"id\":\"";
    const char *at = memmem(lease->body.at, lease->body.len, mark, strlen(mark));

    if (!at)
        return textf("%.*s", (int)strcspn(lease->token.at, "@/"), lease->token.at);
    return textf("%.*s", (int)strcspn(at + strlen(mark), "\""), at + strlen(mark));
}

static bool
    says_times; /* of a claim: when each job was enqueued, since when it waits, and what its head has besides */

/* Keeps its token; out NULL: it is not named. */
static void note_lease(const struct lease *lease, FILE *out, bool follows)
{
    static const char *const names[] = {"attempts", "interrupted", "throttled"};
    const int numbers[] = {lease->attempts, lease->interrupted, lease->throttled};
    const char *id = id_of(lease);
    struct leased *l = &leased[leased_count++ % COUNT(leased)];

    assert_true(leased_count <= COUNT(leased));
    snprintf(l->id, sizeof l->id, "%s", id);
    snprintf(l->token, sizeof l->token, "%.*s", (int)lease->token.len, lease->token.at);
    if (!out)
        return;
    fprintf(out, "%s%s", follows ? " " : "", id);
    if (lease->cost != 1)
        fprintf(out, "*%" PRId64, lease->cost);
    if (lease->slot_us > turns.now_us)
        fprintf(out, "@%s", time_text(lease->slot_us - turns.now_us));
    for (size_t i = 0; i < COUNT(names); i++)
        if (numbers[i])
            fprintf(out, "(%s %d)", names[i], numbers[i]);
    if (says_times)
        put_text(out, textf("(enqueued %" PRId64 " since %" PRId64 "%.*s)", lease->enqueued_us,
                            lease->since_us, (int)lease->attrs.len, lease->attrs.at));
}

static void put_words(FILE *out, const char *name, const struct span *list, size_t count)
{
    if (count)
        fputs(name, out);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%.*s", i || *name ? " " : "", (int)list[i].len, list[i].at);
}

/* ---- Steps: words[0] is the verb */

const char *words[WORDS_MOST];
int word_count;

bool is(const char *verb)
{
    return strcmp(words[0], verb) == 0;
}

const char *words_from(int i)
{
    char *text = textf("%s", i < word_count ? words[i] : "");

    while (++i < word_count)
        text = textf("%s %s", text, words[i]);
    return text;
}

static struct names names_of(const char *text)
{
    static const char *lists[8][WORDS_MOST];
    static unsigned next;
    const char **list = lists[next++ % COUNT(lists)];
    char *rest = textf("%s", text);
    int count = 0;

    for (char *name; *text && (name = strsep(&rest, ","));)
        list[count++] = name;
    return (struct names){list, count};
}

/* Redis went back in time: from when to when, and when that was found. */
static void put_back(FILE *out, const char *times)
{
    if (*times)
        put_text(out, textf("; back %s", times));
}

/* A worker under a new id, which still runs these jobs. */
static int come_again(FILE *out)
{
    struct names ids = names_of(words_from(3));
    struct span running[WORDS_MOST];
    size_t lost = 0;
    int rc;

    for (int i = 0; i < ids.count; i++)
        running[i] = token_of(ids.at[i]);
    rc = turns_adopt(words[1], words[2], running, (size_t)ids.count, ask.queues, &lost);
    if (rc == 0)
        fprintf(out, "%lld registered, bell %s", turns.reply->element[6]->integer,
                turns.reply->element[7]->str);
    if (lost)
        fprintf(out, "; lost %zu: %s", lost, turns.reply->element[11]->str);
    if (rc == 0)
        put_back(out, turns.reply->element[3]->str);
    return rc;
}

/* A worker that runs these jobs of a type dies, and another takes them back. */
static int die_with(void)
{
    start("dead");
    enqueue("default", words[1], words_from(2));
    claim("dead", 60, 0);
    start("reaper");
    pass("reaper", LEASE_US + SECOND_US);
    return turns_adopt("", "reaper", NULL, 0, default_queue, NULL);
}

/* Rules as they are stored, of rules as people write them, or as they are stored. */
static const char *rules_of(const char *rules)
{
    const char *first = textf("%.*s", (int)strcspn(rules, " "), rules);
    struct rule_set set;
    char text[RULE_SET_TEXT_SIZE];

    if (!*rules || strchr(rules, ':') || strchr(first, '/') != strrchr(first, '/'))
        return rules;
    set = client_rules(rules);
    rule_set_write(&set, text);
    return textf("%s", text);
}

/* What people do, and when. */
static int change(FILE *out)
{
    const char *name = word_count > 1 ? words[1] : "";

    if (is("limit"))
        return turns_rate(name, rules_of(words_from(2)));
    if (is("use") || is("unuse"))
        return turns_use(name, words[0], "", words + 2, (size_t)word_count - 2);
    if (is("cost"))
        return turns_use(name, "use", words[2], NULL, 0);
    if (is("weigh"))
        return turns_weight(name, words[2], atoi(words[3]));
    if (is("pause") || is("resume"))
        return turns_pause(name, is("pause") ? time_of(words[2]) : 0);
    if (is("worker"))
        return turns_adopt(name, "", NULL, 0, ask.queues, NULL);
    if (is("seen")) {
        turns.seen_us = strtoll(name, NULL, 10);
        return 0;
    }
    if (is("leave"))
        return turns_adopt("", name, NULL, 0, default_queue, NULL);
    if (is("again"))
        return come_again(out);
    if (is("dies"))
        return die_with();
    if (is("next"))
        turns.now_us = turns.claim.next_us + LEAD_US;
    else if (strchr("+-", words[0][0]))
        turns.now_us += time_of(words[0]);
    else
        return OTHER;
    return 0;
}

static void add_jobs(void)
{
    const char *colon = strchr(words[1], ':'), *type = colon ? colon + 1 : words[1],
               *star = strchr(type, '*');
    const char *queue = colon ? textf("%.*s", (int)(colon - words[1]), words[1]) : "default";
    const char *members = words[word_count - 1][0] == '{' ? words[--word_count] : NULL;

    if (star)
        enqueue_many(textf("%.*s", (int)(star - type), type), atoi(star + 1));
    for (int i = 2; i < word_count; i++)
        if (members)
            enqueue_with(type, words[i], textf("%.*s", (int)strlen(members) - 2, members + 1));
        else
            enqueue(queue, type, words[i]);
}

/* Jobs as a producer enqueues them, of a batch, with a lock, or later. Who is refused changes nothing. */
static int put_jobs(FILE *out)
{
    struct enqueue job = {.queue = span_str("default"),
                          .type = span_str(words[1]),
                          .keep_ms = 1000,
                          .tag = "tag",
                          .delay_us = -1,
                          .at_us = -1};
    int first = 2, rc = 0;

    for (const char *value; (value = strchr(words[first], '=')); first++) {
        const char *name = textf("%.*s", (int)(value++ - words[first]), words[first]);

        if (strcmp(name, "batch") == 0)
            job.batch = span_str(value);
        else if (strcmp(name, "unique") == 0)
            job.unique = span_str(value);
        else if (strcmp(name, "until") == 0)
            job.lock_ms = strcmp(value, "start") == 0 ? LOCK_UNTIL_START : time_of(value) / 1000;
        else if (strcmp(name, "in") == 0)
            job.delay_us = time_of(value);
        else if (strcmp(name, "tag") == 0)
            job.tag = value;
        else
            fail_msg("put: %s is unknown", name);
    }
    for (int i = first; i < word_count && rc == 0; i++) {
        char *before = turns_digest();
        enum enqueue_result result;
        struct span holder;
        struct args a = {0};

        job.id = span_str(words[i]);
        job.body = span_str(textf("{\"id\":\"%s\",\"type\":\"%s\"}", words[i], words[1]));
        enqueue_request(&a, PREFIX, turns.now_us, &job);
        rc = turns_send(&a);
        if (rc == 0)
            rc = enqueue_reply(turns.reply, &job, &result, &holder, &turns.error);
        if (rc == 0 && result == ENQUEUE_NEW)
            free(before);
        else {
            if (rc == 0)
                fprintf(out, "%s %.*s", result == ENQUEUE_HELD ? "held by" : "known", (int)holder.len,
                        holder.at);
            turns_unchanged(before);
        }
    }
    return rc;
}

static bool says_duty, says_crowd, says_causes; /* of a claim */
static struct {
    const char *worker;
    int64_t until_us;
} duties[WORDS_MOST];

/* The claim settles these jobs of type t. */
static void settle_along(struct names ids)
{
    static struct span done[WORDS_MOST];

    for (int i = 0; i < ids.count; i++)
        done[i] = token_of(ids.at[i]);
    ask.done_type = "t";
    ask.done = done;
    ask.done_count = ids.count;
}

static void ask_for(const char *word)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"alone", &ask.alone}, {"held", &ask.held},         {"mark", &ask.mark},
                 {"wide", &ask.wide},   {"reserved", &ask.reserved}, {"dead", &ask.unknown_dead},
                 {"duty", &says_duty},  {"crowd", &says_crowd},      {"causes", &says_causes},
                 {"times", &says_times}};
    const char *value = strchr(word, '=') ? strchr(word, '=') + 1 : "";
    const struct names list = names_of(value);

    for (size_t i = 0; i < COUNT(flags); i++)
        if (strcmp(flags[i].name, word) == 0) {
            *flags[i].flag = true;
            return;
        }
    if (strncmp(word, "ahead=", 6) == 0)
        ask.ahead_us = time_of(value);
    else if (strncmp(word, "far=", 4) == 0)
        ask.far = atoi(value);
    else if (strncmp(word, "group=", 6) == 0)
        ask.group = value;
    else if (strncmp(word, "digest=", 7) == 0)
        ask.digest = value;
    else if (strncmp(word, "done=", 5) == 0)
        settle_along(list);
    else if (strncmp(word, "queues=", 7) == 0)
        ask.queues = list;
    else if (strncmp(word, "types=", 6) == 0)
        ask.types = list;
    else
        fail_msg("ask: %s is unknown", word);
}

/* What a worker was answered last of its duty. */
static int64_t *duty_of(const char *worker)
{
    int i = 0;

    while (i < WORDS_MOST - 1 && duties[i].worker && strcmp(duties[i].worker, worker) != 0)
        i++;
    duties[i].worker = worker;
    return &duties[i].until_us;
}

static void put_duty(FILE *out)
{
    int64_t *until_us = duty_of(words[1]);

    *until_us = turns.claim.duty_until_us;
    if (*until_us)
        fprintf(out, "; duty %s", time_text(*until_us - turns.now_us));
}

/* What let the leases start, and what of each limit nobody had taken: "slow 500 0.05s w 0", as struct loss has it. */
static void put_causes(FILE *out)
{
    if (turns.claim.causes.len)
        put_words(out, "; causes", &turns.claim.causes, 1);
    for (size_t i = 0; i < turns.claim.loss_count; i++) {
        const struct loss *loss = &turns.claim.losses[i];

        fprintf(out, "; lost %.*s %" PRId64 " %s %c %zu", (int)loss->limit.len, loss->limit.at,
                loss->thousandths, time_text(turns.now_us - loss->since_us), loss->why, loss->lease);
    }
}

static int run_claim(FILE *out)
{
    const struct claim *c = &turns.claim;
    int rc;

    ask.duty_until_us = says_duty ? *duty_of(words[1]) : 0;
    rc = try_claim(words[1], atoi(words[2]), word_count > 3 ? atoi(words[3]) : 0);
    if (rc != 0)
        return rc;
    if (c->lease_count > LEASES_NAMED)
        fprintf(out, "%zu jobs", c->lease_count);
    else if (c->lease_count == 0)
        fputs("nothing", out);
    for (size_t i = 0; i < c->lease_count; i++)
        note_lease(&c->leases[i], c->lease_count > LEASES_NAMED ? NULL : out, i > 0);
    if (c->next_us >= 0)
        fprintf(out, "; next %s", time_text(c->next_us - turns.now_us));
    if (c->later_us >= 0)
        fprintf(out, "; later %s", time_text(c->later_us - turns.now_us));
    fprintf(out, "%s%s%s", c->more ? "; more" : "", c->starved ? "; starved" : "", c->alone ? "; alone" : "");
    if (ask.done_count && turns.stale)
        fprintf(out, "; stale %" PRId64, turns.stale);
    if (says_duty)
        put_duty(out);
    if (says_crowd)
        fprintf(out, "; crowd %d", c->crowd);
    put_words(out, "; held", c->held, c->held_count);
    put_words(out, "; broken", c->broken, c->broken_count);
    put_words(out, "; paused", c->paused, c->paused_count);
    if (says_causes)
        put_causes(out);
    return 0;
}

static void end_jobs(FILE *out)
{
    static const char *const verbs[] = {"retry",  "throttled", "back",        "dead",
                                        "finish", "cancelled", "interrupted", "done"};
    struct names ids = names_of(words[3]);
    struct args a = {0};
    struct paused paused;
    int64_t stale;
    size_t verb = 0;
    char type[130];

    while (strcmp(verbs[verb], words[2]) != 0)
        assert_true(++verb < COUNT(verbs));
    settle_request(&a, PREFIX, turns.now_us, words[1]);
    for (int i = 0; i < ids.count; i++) {
        struct span token = token_of(ids.at[i]);

        if (verb <= SETTLE_INTERRUPTED) {
            turns_add_end(&a, (enum settle_verb)verb, token, word_count > 4 ? time_of(words[4]) : 0,
                          words_from(5));
            continue;
        }
        assert_int_equal(sscanf(token.at, "%*[^/]/%*[^/]/%129[^/]", type), 1);
        if (i == 0)
            settle_done(&a, type, span_str(words[4]), (size_t)ids.count);
        settle_token(&a, token);
    }
    stale = settled(&a);
    if (stale)
        fprintf(out, "stale %" PRId64, stale);
    for (size_t i = 0; settle_paused(turns.reply, i, &paused); i++)
        fprintf(out, "paused %s, %" PRId64 " in a row", time_text(paused.pause_us), paused.times);
}

static int run_beat(FILE *out)
{
    struct redisReply *const *said;
    int64_t taken, workers;
    int rc = turns_reap(words[1], &taken, &workers);

    if (rc != 0)
        return rc;
    said = turns.reply->element; /* as the top of reap.lua has them */
    fprintf(out, "%" PRId64, taken);
    if (workers)
        fprintf(out, "; reaped %" PRId64, workers);
    fprintf(out, "%s%s", said[3]->integer ? "; more" : "", said[11]->integer ? "; not needed" : "");
    for (size_t i = 0; i < said[5]->elements; i++)
        fprintf(out, "; wrong %s", said[5]->element[i]->str);
    put_back(out, said[7]->str);
    return 0;
}

/* What workers and producers do. */
static int act(FILE *out)
{
    if (is("claim"))
        return run_claim(out);
    if (is("beat"))
        return run_beat(out);
    if (is("put"))
        return put_jobs(out);
    if (is("end"))
        end_jobs(out);
    else if (is("spend"))
        spend(words[1], token_of(words[2]), atoi(words[3]));
    else if (is("pass"))
        fprintf(out, "%" PRId64, pass(words[1], time_of(words[2])));
    else
        return OTHER;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Counters of a type, by name: no times, no marks of rates. */
static void put_stats(FILE *out, const char *type)
{
    char *text = redis_text("HGETALL", textf(PREFIX "stats:%s", type)), *rest = text;
    const char *fields[100];
    size_t n = 0;

    for (char *name, *value; (name = strsep(&rest, "\n")) && (value = strsep(&rest, "\n"));)
        if (strcmp(value, "0") != 0 && !strstr(name, "_us") && !strstr(name, "mark") && !strstr(name, "last"))
            fields[n++] = textf("%s %s", name, value);
    qsort(fields, n, sizeof *fields, by_name);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s%s", i ? ", " : "", fields[i]);
    free(text);
}

/* Calls it; an answer in JSON is said with its members in the order of their names. */
static int ask_script(FILE *out, const char *script, const char *const *args, size_t count)
{
    int rc = turns_script(script, args, count);
    json_t *answer =
        rc == 0 && turns.reply->type == REDIS_REPLY_STRING ? json_loads(turns.reply->str, 0, NULL) : NULL;
    char *text = answer ? json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    if (text)
        put_text(out, text);
    else if (rc == 0)
        put_reply(out, turns.reply);
    free(text);
    json_decref(answer);
    return rc;
}

/* A limit is written, and nothing that waits for it is looked at. */
static int set_limit(FILE *out)
{
    const char *args[] = {words[1], rules_of(words_from(2)), "0", "set", "me"};

    return ask_script(out, "rate_set", args, COUNT(args));
}

static int call_script(FILE *out)
{
    const char *args[WORDS_MOST];

    for (int i = 2; i < word_count; i++)
        args[i - 2] = strcmp(words[i], "_") == 0 ? ""
                      : words[i][0] == '&'       ? token_of(words[i] + 1).at
                                                 : words[i];
    return ask_script(out, words[1], args, (size_t)word_count - 2);
}

static int run_redis(FILE *out)
{
    struct args a = {0};
    int rc;

    for (int i = 0; i < word_count; i++)
        args_add(&a, words[i]);
    rc = turns_send(&a);
    if (rc == 0)
        put_reply(out, turns.reply);
    return rc;
}

static bool is_checked; /* what must always hold, until a scene says "unchecked" */

/* What moves no job. */
static int look(FILE *out)
{
    static char *remembered;

    if (isupper(words[0][0]))
        return run_redis(out);
    if (is("call"))
        return call_script(out);
    if (is("set"))
        return set_limit(out);
    if (is("ids"))
        fputs(list_ids(words[1]), out);
    else if (is("stats"))
        put_stats(out, words[1]);
    else if (is("token"))
        put_text(out, token_text(token_of(words[1])));
    else if (is("limits"))
        put_words(out, "", turns.claim.limits, turns.claim.limit_count);
    else if (is("calls"))
        fprintf(out, "%lld", server_calls(&turns.server, words[1]));
    else if (is("remember")) {
        free(remembered);
        remembered = turns_digest();
    } else if (is("unchanged"))
        nothing_changed_since(strdup(remembered));
    else if (is("unchecked") || is("checked"))
        is_checked = is("checked");
    else if (is("job"))
        add_jobs();
    else if (is("says"))
        turns.info = word_count > 1 ? words[1] : NULL;
    else if (is("push"))
        push(words[1], words[2]);
    else if (is("ask")) {
        scene_ask_anew();
        says_duty = says_crowd = says_causes = says_times = false;
        for (int i = 1; i < word_count; i++)
            ask_for(words[i]);
    } else
        return OTHER;
    return 0;
}

void play_begin(void)
{
    scene_begin(NULL);
    turns.info = NULL;
    turns.seen_us = 0;
    leased_count = 0;
    play_forget_known();
    memset(duties, 0, sizeof duties);
    says_duty = says_crowd = says_causes = says_times = false;
    is_checked = true;
}

void play_end(void)
{
    if (is_checked)
        turns_check();
}

/* The step that these words are; OTHER: there is none. */
static int run_words(FILE *out)
{
    int rc = look(out);

    if (rc != OTHER)
        return rc;
    rc = change(out);
    if (rc == OTHER)
        rc = act(out);
    if (rc == OTHER)
        rc = play_schedules(out);
    if (rc == OTHER)
        rc = play_knowing(out);
    if (rc == OTHER)
        rc = play_by_client(out);
    if (rc == 0 && is_checked)
        turns_check();
    return rc;
}

int play_step(const char *line, FILE *out)
{
    int rc;

    if (strncmp(line, "refused ", 8) == 0) {
        expect_refused((const char *const[]){line + 8}, 1);
        return 0;
    }
    word_count = split_words(line, words);
    rc = run_words(out);
    fail_if(rc == OTHER, "%s: no such step", line);
    if (rc != 0)
        put_text(out, textf("error: %s", turns.error.text));
    return rc;
}
