/* No escape sequence reaches a terminal: whatever stands in a field of a key, all commands print text. A
 * namespace holds one thing of each kind; then control characters stand behind each word of it, and every
 * command looks. */
#include "tests/scene.h"

#include <jansson.h>

#include "core/utf8.h"
#include "tests/program.h"

#define ESCAPE "\x1b]0;owned\x07\x1b[31m\x9b\x31m\xc2\x9b\x31m\x7f\r\n\b"
#define ESCAPE_JSON "\\u001b[31m\\u0007\\u009b1m\\u007f\\r\\n\\b"

/* ---- What there is: commands, their words between '|', the second one behind the prefix. */

#define LEASE "1.00@1795000000000000*2/default/t/42~L#1/42"
#define HEAD "@1,1,1,ssecret,bnight,ukey,e1795000000000000:no luck;"
#define BODY(id) "{\"id\":\"" id "\",\"type\":\"t\",\"key\":\"42\",\"cost\":2,\"args\":{\"to\":\"you\"}}"

static const char *const things[] = {
    "HSET|about|secret|secret",
    "SADD|queues|default|mail",
    "HSET|types|t|use=L cost=2 lanes=key costs=own|slow||gone|use=missing",
    "HSET|limits|L|gcra:10/1000000/10 concurrency:3,by=key pause:1895000000000000/1795000000000000 weights:1",
    "HSET|limits|slow|fixed-window:5/1000000/0|odd|nothing that can be read",
    "HSET|weights|L/42|5",
    "RPUSH|changes|{\"at\":1795242000,\"by\":\"me@host\",\"what\":\"set L 10/1s\"}",
    "SET|gate:L#0|1795000000000000 0 - - gcra:10/1000000/10 1795000000250000 3",
    "SET|gate:L#1/42|1795000000000000 0 - - concurrency:3 ~1",
    "SET|stop:t/42|2 1795000000000000 1 1895000000000000",
    "RPUSH|queue:default|" HEAD BODY("waits"),
    "RPUSH|queue:mail|{\"id\":\"other\",\"type\":\"slow\",\"args\":1}",
    "RPUSH|lane:default/t/42|" HEAD BODY("parked"),
    "ZADD|sleep:default|1895000000000000|L#1/42",
    "ZADD|wait:default/L#1/42|5|t/42",
    "ZADD|wake:default|1895000000000000|*|1895000000000000|slow#0",
    "RPUSH|lane:default/slow/|{\"id\":\"slowly\",\"type\":\"slow\"}",
    "ZADD|ring:default/slow|5|",
    "ZADD|wait:default/slow#0|5|slow",
    "RPUSH|lane:mail/held/|{\"id\":\"held\",\"type\":\"held\"}",
    "ZADD|ring:mail/held|5|",
    "ZADD|held:mail|5|held",
    "HSET|credit:default/t|42|3",
    "HSET|active:w1|@|{\"host\":\"box\",\"pid\":17,\"executors\":4,\"lease\":30.0,\"library\":\"weir\","
    "\"queues\":"
    "[\"default\"],\"types\":[\"t\"]}|" LEASE "|" HEAD BODY("runs"),
    "ZADD|workers|9000000000000000|w1|1795000000000000|late",
    "SET|reap|1795000000000000 1795000000000000",
    "HSET|duty|group|w1 9000000000000000 default",
    "RPUSH|bell:group|1",
    "ZADD|later|9000000000000000|q soon.tag default t\n" HEAD BODY("soon"),
    "ZADD|later|9000000000000000|l w1:1.00 default/t/42\n" HEAD BODY("again"),
    "ZADD|later|9000000000000000|s sched\n",
    "ZADD|dead|1795000000000000|w1:1.00 default/t/42 exit 3: bad\n" HEAD BODY("gone"),
    "HSET|halted|q/mail|1795000000000000|b/day|paused 1795000000000000",
    "HSET|cancelled|parked|waiting 1795000000000000|runs|running 1795000000000000",
    "RPUSH|told:w1|" LEASE,
    "RPUSH|aside:day|default/t/\n@1,1,1,bday,ukey,e1795000000000000:no luck;" BODY("aside"),
    "HSET|schedules|sched|{\"when\":\"0 9 * * "
    "MON\",\"zone\":\"Europe/Berlin\",\"missed\":\"once\",\"queue\":\"default\","
    "\"job\":\"{\\\"id\\\":\\\"sched\\\",\\\"type\\\":\\\"t\\\",\\\"args\\\":1}\"}",
    "HSET|batch:night|total|3|done|1|dead|1|cancelled|0|failed|1|created|1795000000000000|then|mail "
    "t|mark_us|"
    "1795000000000000|mark|1|last_us|1794000000000000|last|0|next|3|sum|0123456789abcdef",
    "HSET|batch:day|total|1|created|1795000000000000",
    "ZADD|batches|1795000000000000|night|1795000000000001|day",
    "SET|unique:key|waits",
    "SET|finished:over|done 1795000000000000 w1 3 default/t/42\n" BODY("over"),
    "SET|id:waits|tag",
    "HSET|stats:t|enqueued|5|pulled|1|done|1|keyless|2|mark_us|1795000000000000|mark|1|last_us|"
    "1794000000000000|last|0",
};

static bool send_words(char *const *words, int count)
{
    struct args a = {0};

    for (int i = 0; i < count; i++)
        args_add(&a, words[i]);
    return turns_send(&a) == 0;
}

/* false: Redis has no such thing, such as a score that is no number. */
static bool make(const char *thing)
{
    char text[3000], *words[40] = {"", ""}, *rest = text;
    int count = 0;

    assert_true(strlen(thing) < sizeof text);
    strcpy(text, thing);
    while (rest && count < 40)
        words[count++] = strsep(&rest, "|");
    assert_true(count > 2);
    words[1] = textf(PREFIX "%s", words[1]);
    return send_words(words, count);
}

static void make_all(void)
{
    for (size_t i = 0; i < COUNT(things); i++)
        assert_true(make(things[i]));
}

/* ---- Words of it, and what is put behind them */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Words end at all else; one of digits alone counts where a field ends with it. */
static bool is_end(const char *text, const char *at)
{
    const char *begin = at;

    if (at == text || !is_word(at[-1]) || is_word(*at))
        return false;
    while (begin > text && is_word(begin[-1]))
        begin--;
    return !*at || *at == '|' || strspn(begin, "0123456789") < (size_t)(at - begin);
}

/* Where the n-th word of text ends, counted from 0; 0: it has no more. */
static size_t word_end(const char *text, size_t n)
{
    for (const char *at = text;; at++) {
        if (is_end(text, at) && n-- == 0)
            return (size_t)(at - text);
        if (!*at)
            return 0;
    }
}

/* Where the words of a thing end that are not looked at: bodies are all read in the same way, one of them is
 * enough. */
static const char *end_of(const char *thing)
{
    const char *body = strstr(thing, "{\"id\":");

    return body && !strstr(thing, "queue:default") ? body : thing + strlen(thing);
}

/* Sends a thing with an escape behind the n-th word from its key on; false: it has no more of them. */
static bool make_wrong(const char *thing, size_t n)
{
    const char *key = strchr(thing, '|') + 1;
    size_t at = word_end(key, n);
    bool in_json;

    if (at == 0 || key + at > end_of(thing))
        return false;
    in_json = memchr(key, '{', at) != NULL && n % 3 > 0; /* else it is none any more */
    make(textf("%.*s%s%s", (int)(key - thing + (ptrdiff_t)at), thing, in_json ? ESCAPE_JSON : ESCAPE,
               key + at));
    return true;
}

/* ---- What is printed */

static struct outcome said;

static void check_text(const char *line, const char *text)
{
    for (size_t at = 0, len = strlen(text), n; at < len; at += n) {
        n = utf8_printable(text + at, len - at);
        if (n == 0 && text[at] != '\n' && text[at] != '\t')
            fail_msg("weir %s printed \\x%02x: %.300s", line, (unsigned char)text[at], text);
        n += n == 0;
    }
}

/* weir with the words of line, split at blanks; ^ stands for the escape. */
static void weir(const char *line, const char *thing)
{
    char text[600] = "";

    for (const char *c = line; *c; c++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%.*s", *c == '^' ? 99 : 1,
                 *c == '^' ? ESCAPE : c);
    program_weir(&said, NULL, turns.server.url, NULL, text);
    if (said.code == -WEIR_EINTERNAL || said.code >= 1000)
        fail_msg("weir %s: %d: %s (%s)", line, said.code, said.err, thing);
    check_text(line, said.out);
    check_text(line, said.err);
}

/* The same as JSON, which must be some. */
static void weir_json(const char *line, const char *thing)
{
    char whole[600], *rest = said.out, *doc;

    snprintf(whole, sizeof whole, "%s --json", line);
    weir(whole, thing);
    if (strlen(said.out) == sizeof said.out - 1)
        return; /* it was cut */
    while ((doc = strsep(&rest, "\n"))) {
        json_t *json = *doc ? json_loads(doc, 0, NULL) : json_null();

        if (!json)
            fail_msg("weir %s: no JSON: %.300s", whole, doc);
        json_decref(json);
    }
}

/* ---- Every command */

static const char *const looks[] = {
    "status",
    "doctor",
    "rate list",
    "rate show L",
    "rate show odd",
    "rate log",
    "rate set L 9/s --dry-run",
    "rate unuse t L --dry-run",
    "rate remove L --dry-run",
    "batch list",
    "batch show night",
    "batch show day",
    "batch cancel day --dry-run",
    "dead list",
    "dead show gone",
    "dead retry --all --dry-run",
    "dead remove --all --dry-run",
    "queue list",
    "queue purge default --dry-run",
    "schedule list",
    "schedule show sched",
    "job show waits",
    "job show parked",
    "job show runs",
    "job show soon",
    "job show again",
    "job show aside",
    "job show over",
    "why waits",
    "why parked",
    "why runs",
    "why soon",
    "why slowly",
    "why held",
    "take L/42 --peek",
};

/* Those that show what is in a key of that family. */
static const struct {
    const char *family;
    const char *looks[4];
} families[] = {
    {"about", {"why waits"}},
    {"queues", {"queue list", "status"}},
    {"types", {"status", "rate show L"}},
    {"limits", {"rate list", "rate show slow"}},
    {"weights", {"rate show L"}},
    {"changes", {"rate log"}},
    {"gate:", {"rate show L", "why parked", "take L/42 --peek"}},
    {"stop:", {"status"}},
    {"queue:default", {"job show waits", "why waits"}},
    {"queue:mail", {"job show other", "why other"}},
    {"lane:default/t", {"job show parked", "why parked"}},
    {"lane:default/slow", {"why slowly"}},
    {"lane:mail", {"why held"}},
    {"sleep:", {"why parked"}},
    {"wait:", {"why parked"}},
    {"wake:", {"why slowly"}},
    {"ring:", {"why slowly"}},
    {"held:", {"why held"}},
    {"active:", {"status", "job show runs"}},
    {"workers", {"status"}},
    {"later|9000000000000000|q", {"job show soon"}},
    {"later|9000000000000000|l", {"job show again"}},
    {"later|9000000000000000|s", {"schedule list"}},
    {"dead", {"dead list", "dead show gone"}},
    {"halted", {"queue list", "batch list", "job show aside"}},
    {"cancelled", {"job show parked", "job show runs"}},
    {"aside:", {"job show aside", "why aside"}},
    {"schedules", {"schedule list", "schedule show sched"}},
    {"batch:", {"batch list", "batch show night"}},
    {"batches", {"batch list"}},
    {"unique:", {"job show waits"}},
    {"finished:", {"job show over", "why over"}},
    {"stats:", {"status", "rate list"}},
};

static const char *const *looks_at(const char *thing)
{
    static const char *const none[] = {NULL}; /* what it holds is shown nowhere */
    const char *key = strchr(thing, '|') + 1;

    for (size_t i = 0; i < COUNT(families); i++)
        if (strncmp(key, families[i].family, strlen(families[i].family)) == 0)
            return families[i].looks;
    return none;
}

static void look_at(const char *thing, bool json)
{
    const char *const *lines = looks_at(thing);

    for (int i = 0; i < 4 && lines[i]; i++)
        json ? weir_json(lines[i], thing) : weir(lines[i], thing);
}

/* All but one as they should be, and that one with an escape behind its n-th word; false: it has no more of
 * them. */
static bool make_all_but(size_t wrong, size_t n)
{
    turns_flush(NULL);
    for (size_t i = 0; i < COUNT(things); i++)
        if (i != wrong)
            assert_true(make(things[i]));
    return make_wrong(things[wrong], n);
}

SCENE_TEST(test_each_word)
{
    for (size_t i = 0; i < COUNT(things); i++)
        for (size_t n = 0; *looks_at(things[i]) && make_all_but(i, n); n++)
            look_at(things[i], n % 2);
}

/* Things whose words are all wrong stand beside those that are right. */
SCENE_TEST(test_every_command)
{
    make_all();
    for (size_t i = 0; i < COUNT(things); i++)
        for (size_t n = 0; make_wrong(things[i], n); n++)
            ;
    for (size_t i = 0; i < COUNT(looks); i++) {
        weir(looks[i], "all");
        weir_json(looks[i], "all");
    }
}

SCENE_TEST(test_keys_of_another_kind)
{
    for (size_t i = 0; i < COUNT(things); i++) {
        const char *key = strchr(things[i], '|') + 1;
        char name[100], *length;

        turns_flush(NULL);
        make_all();
        snprintf(name, sizeof name, PREFIX "%.*s", (int)strcspn(key, "|"), key);
        redis_do("DEL", name);
        length = strncmp(things[i], "SET", 3) == 0 ? redis_text("RPUSH", name, ESCAPE)
                                                   : redis_text("SET", name, ESCAPE);
        free(length);
        look_at(things[i], false);
    }
}

/* What a person, or a script of theirs, gives a command. */
SCENE_TEST(test_words_of_the_caller)
{
    static const char *const lines[] = {
        "^",
        "status ^",
        "status --^",
        "status --namespace ^",
        "job show ^",
        "job cancel ^ --unique ^",
        "job ^",
        "why ^",
        "take ^",
        "take ^/^ --peek",
        "take new/^ --rule 10/s",
        "take x --rule ^",
        "rate show ^",
        "rate set ^ 1/s",
        "rate set a ^",
        "rate set a 1/s,by=^",
        "rate set a 1/s,^=1",
        "rate use t ^",
        "rate use ^ L",
        "rate weight L ^ 3",
        "rate pause L ^",
        "rate resume ^",
        "rate remove ^ --yes",
        "batch show ^",
        "batch pause ^",
        "batch seal ^",
        "queue pause ^",
        "queue purge ^ --yes",
        "dead list --type ^",
        "dead show ^",
        "dead retry --reason ^",
        "schedule show ^",
        "schedule add ^ @daily t",
        "schedule add a ^ t",
        "schedule add a daily ^",
        "schedule remove ^",
        "plan --count 5 ^",
        "plan --count ^ 5/s",
        "verify ^",
        "enqueue ^",
        "enqueue t ^",
        "enqueue t --id ^",
        "enqueue t --unique ^",
        "enqueue t --in ^",
        "enqueue --from ^",
        "worker --exec ^",
        "worker --exec t=^ --queue ^",
        "worker --load ^",
        "worker --http t=^",
        "serve --port ^",
        "help ^",
    };

    make_all();
    for (size_t i = 0; i < COUNT(lines); i++) {
        weir(lines[i], "its words");
        weir_json(lines[i], "its words");
    }
}

TESTS(turns_start, turns_stop)
