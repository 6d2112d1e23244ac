/* The key of a job is found in its text without decoding the rest: it is what decoding finds, by random texts
 * that are as nasty as JSON may be. */
#include <inttypes.h>

#include "throttle/key.h"

#include "tests/random.h"
#include "tests/scene.h"

#define TEXT_MOST (64 * 1024)
#define ROUNDS 3000
#define NESTED_MOST 1024 /* of queue/job/job_text.lua */

/* Numbers as written here: whole, or of few digits. */
static const char oracle[] =
    "local function text_of(value, inside) "
    "  local kind = type(value) "
    "  if kind == 'string' then return inside and '\"' .. value:gsub('[\\\\\"]', '\\\\%0') .. '\"' or value "
    "end "
    "  if kind == 'number' then return (tostring(value):gsub('^%-0$', '0'):gsub('e%+?(%-?)0*', 'e%1')) end "
    "  if kind == 'boolean' then return tostring(value) end "
    "  if kind ~= 'table' then return inside and 'null' or nil end "
    "  local parts, names = {}, {} "
    "  if #value > 0 then "
    "    for i = 1, #value do parts[i] = text_of(value[i], true) end "
    "    return '[' .. table.concat(parts, ',') .. ']' "
    "  end "
    "  for name in pairs(value) do names[#names + 1] = name end "
    "  table.sort(names) "
    "  for i, name in ipairs(names) do parts[i] = text_of(name, true) .. ':' .. text_of(value[name], true) "
    "end "
    "  return '{' .. table.concat(parts, ',') .. '}' "
    "end "
    "local ok, value = pcall(cjson.decode, ARGV[1]) "
    "for name in ARGV[2]:gmatch('[^.]+') do "
    "  if ok and type(value) == 'table' then value = value[name] else value = nil end "
    "end "
    "local text = text_of(value) "
    "return not text and '-' or text:find('^[%w_.-]+$') and #text <= 128 and text ~= '-' and text or 'h.' .. "
    "redis.sha1hex(text)";

/* ---- Random texts */

static struct scrawl {
    char at[TEXT_MOST];
    size_t len;
    uint64_t random;
} text;

static int64_t draw(int64_t high)
{
    return random_in(&text.random, 0, high);
}

static void put(const char *what)
{
    size_t len = strlen(what);

    assert_true(text.len + len < TEXT_MOST);
    memcpy(text.at + text.len, what, len + 1);
    text.len += len;
}

#define PUT_ONE(list) put((list)[draw(COUNT(list) - 1)])

static void put_blank(void)
{
    static const char *const blanks[] = {"", "", "", "", " ", "\n", "\t ", "  \r\n"};

    PUT_ONE(blanks);
}

/* Names that a path asks for among others, some of them spelled with escapes. */
static void put_name(void)
{
    static const char *const names[] = {"a",   "b",        "a",        "b",       "c",     "aa",
                                        "a.b", "",         "\\u0061",  "\\u00e4", "\\\"a", "a\\\\",
                                        "\\n", "a\\u0062", "x\\u0041", "{",       "]}",    "\xc3\xa4"};

    put("\"");
    if (draw(1))
        put(draw(1) ? "a" : "b");
    else
        PUT_ONE(names);
    put("\"");
}

static void put_string(void)
{
    static const char *const pieces[] = {
        "x", "key", "\\\"",       "\\\\",          "\\\\\\\"",    "{",          "}",
        "[", "]",   "\\\"a\\\":", "\\u0061",       "\\n",         "\\u00e4\\/", ":",
        ",", "1",   " ",          "\\\"b\\\" : {", "\xe2\x82\xac"};
    int64_t n = draw(3) ? draw(4) : draw(200);

    put("\"");
    for (int64_t i = 0; i < n; i++)
        PUT_ONE(pieces);
    put("\"");
}

static void put_value(int depth);

static void put_members(int depth)
{
    int64_t n = draw(depth > 3 ? 1 : 6);

    put("{");
    for (int64_t i = 0; i < n; i++) {
        put_blank();
        put_name();
        put_blank();
        put(":");
        put_blank();
        put_value(depth + 1);
        put_blank();
        if (i + 1 < n)
            put(",");
    }
    put_blank();
    put("}");
}

static void put_list(int depth)
{
    int64_t n = draw(depth > 3 ? 1 : 5);

    put("[");
    for (int64_t i = 0; i < n; i++) {
        put_blank();
        put_value(depth + 1);
        put_blank();
        if (i + 1 < n)
            put(",");
    }
    put("]");
}

static void put_value(int depth)
{
    static const char *const scalars[] = {"1",     "0",      "-7", "true", "false", "null", "12.5", "1e3",
                                          "\"k\"", "123456", "-0", "1.0",  "0.5",   "1.50", "1E20", "2.5e-7"};
    int64_t kind = draw(9);

    if (kind < 3)
        put_members(depth);
    else if (kind < 4)
        put_list(depth);
    else if (kind < 6)
        put_string();
    else
        PUT_ONE(scalars);
}

/* {"id":"a","type":"slow", ... }, mostly larger than what is decoded at once. */
static void make_text(void)
{
    int64_t padded = draw(4); /* 4: none of them, so it is small */

    text.len = 0;
    put("{\"id\":\"a\",\"type\":\"slow\",");
    for (int i = 0; i < 4; i++) {
        if (i == padded) {
            put("\"pad\":\"");
            memset(text.at + text.len, 'x', 1100);
            text.at[text.len += 1100] = '\0';
            put("\"");
        } else {
            put_name();
            put(":");
            put_value(1);
        }
        put_blank();
        put(i == 3 ? "}" : ",");
    }
}

/* ---- */

/* The key that a claim finds. */
static const char *key_found(void)
{
    must(turns_ask("why", WORDS("queue:default", "slow", text.at)));
    return strrchr(answer_text(turns.answer, "lane"), '/') + 1;
}

SCENE_TEST(test_a_key_is_what_decoding_finds)
{
    static const char *const paths[] = {"a", "a.b", "b.a.b"};
    uint64_t seed = random_seed();
    int found = 0, long_ones = 0;

    text.random = seed;
    for (int i = 0; i < ROUNDS; i++) {
        const char *path = paths[i * COUNT(paths) / ROUNDS];
        char *expected;

        must(turns_rate("slow", textf("1/1000000/1,by=%s", path)));
        make_text();
        expected = redis_text("EVAL", oracle, "0", text.at, path);
        if (strcmp(key_found(), expected) != 0) {
            if (text.len <= NESTED_MOST || strcmp(key_found(), "-") != 0)
                fail_msg("WEIR_SEED=%" PRIu64 ", by %s: %s, not %s, in %s", seed, path, key_found(), expected,
                         text.at);
            long_ones++; /* an object or array that is too long to tell jobs apart */
        }
        found += strcmp(expected, "-") != 0;
        free(expected);
    }
    assert_in_range(found, ROUNDS / 20, ROUNDS);
    assert_in_range(long_ones, 0, ROUNDS / 10);
}

/* A number of any size and digits, as programs write them. */
static void put_number(void)
{
    int64_t scale = draw(40) - 20;
    double number = (double)(draw(1) ? draw(1000) : draw(INT64_MAX - 1)) * (draw(1) ? 1 : -1);

    for (int64_t i = 0; draw(1) && i < scale; i++)
        number *= 10;
    for (int64_t i = 0; draw(1) && i > scale; i--)
        number /= 10;
    if (draw(2) == 0)
        put(textf("%" PRId64, draw(INT64_MAX - 1) >> draw(62)));
    else
        put(textf(draw(1) ? "%.17g" : "%.3e", number));
}

/* Whoever names the value of a job names the key that its claim finds. */
SCENE_TEST(test_a_value_that_is_named_is_that_of_the_job)
{
    uint64_t seed = random_seed();
    int made = 0;

    text.random = seed;
    must(turns_rate("slow", "1/1000000/1,by=a"));
    for (int i = 0; i < ROUNDS; i++) {
        char named[KEY_NAMED_SIZE], value[TEXT_MOST], *key;

        text.len = 0;
        if (draw(1))
            put_number();
        else
            put_value(2);
        strcpy(value, text.at);
        if (strcmp(value, "null") == 0 || strlen(value) > NESTED_MOST)
            continue;
        key_name(value, named);
        key = strchr(named, '|') ? strchr(named, '|') + 1 : named;
        strcpy(text.at, textf("{\"id\":\"a\",\"type\":\"slow\",\"a\":%s}", value));
        if (strcmp(key_found(), key) != 0)
            fail_msg("WEIR_SEED=%" PRIu64 ": %s is named %s, not %s", seed, value, key, key_found());
        made += strchr(key, '.') != NULL;
    }
    assert_in_range(made, ROUNDS / 20, ROUNDS);
}

TESTS(turns_start, turns_stop)
