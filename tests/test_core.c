/* core without a network: addresses, arguments, error replies, names, the log. */
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/test.h"
#include <jansson.h>

#include "core/client/client.h"
#include "core/clock.h"
#include "core/decimal.h"
#include "core/log/format.h"
#include "core/script/script.h"
#include "tests/comma.h"
#include "tests/program.h"

/* ---- Addresses */

TEST(good_addresses)
{
    static const struct {
        const char *url;
        struct redis_address is;
        const char *shown;
    } cases[] = {
        {"redis://localhost", {.host = "localhost", .port = 6379}, "redis://localhost:6379/0"},
        {"localhost:7000", {.host = "localhost", .port = 7000}, "redis://localhost:7000/0"},
        {"10.0.0.7:7000/2", {.host = "10.0.0.7", .port = 7000, .database = 2}, "redis://10.0.0.7:7000/2"},
        {"REDIS://a.b-c:1", {.host = "a.b-c", .port = 1}, "redis://a.b-c:1/0"},
        {"redis://h:65535/", {.host = "h", .port = 65535}, "redis://h:65535/0"},
        {"redis://h/7", {.host = "h", .port = 6379, .database = 7}, "redis://h:6379/7"},
        {"redis://:pw@h", {.host = "h", .port = 6379, .password = "pw"}, "redis://h:6379/0"},
        {"redis://me:p%40%2f%3a@h:2/3",
         {.host = "h", .port = 2, .database = 3, .user = "me", .password = "p@/:"},
         "redis://h:2/3"},
        {"redis://me:a@b:c@h",
         {.host = "h", .port = 6379, .user = "me", .password = "a@b:c"},
         "redis://h:6379/0"},
        {"redis://[::1]", {.host = "::1", .port = 6379}, "redis://[::1]:6379/0"},
        {"redis://u:p@[fe80::1]:80/2",
         {.host = "fe80::1", .port = 80, .database = 2, .user = "u", .password = "p"},
         "redis://[fe80::1]:80/2"},
        {"redis+sentinel://a,b:1/name",
         {.finder = REDIS_BY_SENTINELS, .seeds = "a:26379,b:1", .master = "name", .port = 26379},
         "redis+sentinel://a:26379,b:1/name/0"},
        {"rediss+sentinel://u:p@[::1]:2/n%2fm/3?sentinel-user=s&sentinel-password=q",
         {.finder = REDIS_BY_SENTINELS,
          .tls = true,
          .seeds = "[::1]:2",
          .master = "n/m",
          .port = 26379,
          .database = 3,
          .user = "u",
          .password = "p",
          .sentinel_user = "s",
          .sentinel_password = "q"},
         "rediss+sentinel://[::1]:2/n/m/3"},
        {"redis+cluster://a,b:1",
         {.finder = REDIS_BY_CLUSTER, .seeds = "a:6379,b:1", .port = 6379},
         "redis+cluster://a:6379,b:1"},
        {"unix:///run/r.sock", {.socket_path = "/run/r.sock", .port = 6379}, "unix:///run/r.sock"},
        {"unix:///r?db=12", {.socket_path = "/r", .port = 6379, .database = 12}, "unix:///r?db=12"},
        {"unix://u:p%25@/r", {.socket_path = "/r", .port = 6379, .user = "u", .password = "p%"}, "unix:///r"},
        {"rediss://localhost", {.host = "localhost", .port = 6379, .tls = true}, "rediss://localhost:6379/0"},
        {"REDISS://:pw@h:7/2?sni=a.b&cacert=/a%20b&cacertdir=/c&insecure=yes",
         {.host = "h",
          .port = 7,
          .database = 2,
          .password = "pw",
          .tls = true,
          .insecure = true,
          .sni = "a.b",
          .cacert = "/a b",
          .cacertdir = "/c"},
         "rediss://h:7/2"},
        {"rediss://h?cert=a&key=b&cert=c",
         {.host = "h", .port = 6379, .tls = true, .cert = "c", .key = "b"},
         "rediss://h:6379/0"},
        {"redis://me@h?password-file=/p",
         {.host = "h", .port = 6379, .user = "me", .password_file = "/p"},
         "redis://h:6379/0"},
        {"/r?password-command=get%20it",
         {.socket_path = "/r", .port = 6379, .password_command = "get it"},
         "unix:///r"},
        {"redis://h/3?db=4", {.host = "h", .port = 6379, .database = 4}, "redis://h:6379/4"},
        {"h:1?db=4", {.host = "h", .port = 1, .database = 4}, "redis://h:1/4"},
        {"/run/r.sock?db=1",
         {.socket_path = "/run/r.sock", .port = 6379, .database = 1},
         "unix:///run/r.sock?db=1"},
        {"./r?x=y", {.socket_path = "./r?x=y", .port = 6379}, "./r?x=y"},
        {"/run/r.sock", {.socket_path = "/run/r.sock", .port = 6379}, "unix:///run/r.sock"},
        {"./r.sock", {.socket_path = "./r.sock", .port = 6379}, "./r.sock"},
        {"../run/r.sock", {.socket_path = "../run/r.sock", .port = 6379}, "../run/r.sock"},
    };
    struct redis_address a;
    struct error e;
    char shown[300];

    for (size_t i = 0; i < COUNT(cases); i++) {
        fail_if(redis_address_parse(cases[i].url, &a, &e) != 0, "%s: %s", cases[i].url, e.text);
        assert_int_equal(a.slot, CLUSTER_SLOT);
        a.slot = 0;
        assert_memory_equal(&a, &cases[i].is, sizeof a);
        redis_address_format(&a, shown, sizeof shown);
        assert_string_equal(shown, cases[i].shown);
    }
}

#define LONG_PATH                                                                                            \
    "/0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789a" \
    "bcdef"

TEST(bad_addresses)
{
    static const struct {
        const char *urls, *says;
    } cases[] = {
        {"", "begins with none of"},
        {"localhost: | local host:6379 | run/r.sock | .r.sock | http://h", "begins with none of"},
        {"localhost:65536 | redis://:sesame@h: | redis://:sesame@h:0 | redis://:sesame@h:65536", "port"},
        {"redis://:sesame@h:1x | redis://:sesame/x@h | redis://[::1]x", "port"},
        {"redis+sentinel://a,b | redis+sentinel://a,b/", "name of the master"},
        {"redis+sentinel://a,,b/n | redis+cluster://", "the host is missing"},
        {"redis+sentinel://a,b,/n", "a comma without a host"},
        {"redis+cluster://a/1 | redis+cluster://a?db=1", "database 0 alone"},
        {"redis+cluster://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "more than 16 hosts"},
        {"unix://./r.sock | unix:// | unix:/// | unix://run/r.sock", "not absolute"},
        {"unix://:sesame@run/r", "not absolute"},
        {"redis:// | redis://:sesame@ | redis://:sesame@:1 | redis://[]", "host is missing"},
        {"rediss://:sesame@", "host is missing"},
        {"redis://sesame@h | redis://:@h?password-file=/p | redis://u:@h", "without a password"},
        {"unix://sesame@/r", "without a password"},
        {"redis://:sesame@h?password-file=/p", "several ways"},
        {"redis://h?password-file=/p&password-command=c", "several ways"},
        {"redis://h?password-command= | rediss://h?cacert=", "empty"},
        {"redis://h?password-command=a%20|%20b", "no shell reads COMMAND, and | is for one"},
        {"redis://h?password-command=a%20'b", "no shell reads COMMAND, and ' is for one"},
        {"redis://:ses%zzame@h | redis://:ses%00ame@h | redis://:sesame%4@h", "percent-encoded"},
        {"rediss://h?cacert=%0", "percent-encoded"},
        {"redis://::1", "brackets"},
        {"redis://[::1", "bracket is not closed"},
        {"redis://a b", "character"},
        {"redis://h/x | redis://h/1/2 | redis://h/9999999999 | redis://h/x?db=1", "database"},
        {"redis://h?db=x", "database"},
        {"redis://h? | redis://h?sesame | redis://h?dbs=1 | unix:///r?x=1", "may stand"},
        {"unix:///r?db=1&x", "may stand"},
        {"redis://h?cacert=/a | unix:///r?insecure=yes", "rediss:// alone"},
        {"rediss://h?insecure=no | rediss://h?insecure", "must be yes"},
        {"rediss://h?key=/a", "certificate"},
        {"unix:///r?db=", "?db=n"},
        {LONG_PATH "x | ." LONG_PATH, "longer"},
    };
    struct redis_address a;
    struct error e;

    for (size_t i = 0; i < COUNT(cases); i++)
        for (char *rest = textf("%s", cases[i].urls), *url; (url = cut_text(&rest));) {
            fail_if(redis_address_parse(url, &a, &e) != WEIR_ECONFIG, "%s was taken", url);
            assert_int_equal(e.status, WEIR_ECONFIG);
            fail_if(!strstr(e.text, cases[i].says) || strstr(e.text, "sesame") || strchr(e.text, '\n'),
                    "%s: %s", url, e.text);
            assert_non_null(strstr(e.text, "; "));
        }
    assert_int_equal(redis_address_parse(LONG_PATH, &a, &e), 0);
}

TEST(long_parts)
{
    char word[8400];
    struct redis_address a;
    struct error e;

    memset(word, 'x', sizeof word);
    assert_int_equal(redis_address_parse(textf("redis://:%.8191s@h", word), &a, &e), 0);
    assert_int_equal(strlen(a.password), 8191);
    assert_int_equal(redis_address_parse(textf("redis://:%.8192s@h", word), &a, &e), WEIR_ECONFIG);
    assert_int_equal(redis_address_parse(textf("redis://%.128s:p@h", word), &a, &e), WEIR_ECONFIG);
    assert_int_equal(redis_address_parse(textf("redis://%.255s", word), &a, &e), 0);
    assert_int_equal(redis_address_parse(textf("redis://%.256s", word), &a, &e), WEIR_ECONFIG);
}

/* ---- Arguments */

TEST(words_are_copied)
{
    struct args a = {0};
    char word[] = "one";

    args_add(&a, word);
    word[0] = 'x';
    args_add(&a, "");
    args_add_bytes(&a, "a\0b", 3);
    args_add_bytes(&a, NULL, 0);
    args_add_int(&a, INT64_MIN);
    args_add_int(&a, 1700000000123456);
    assert_int_equal(a.count, 6);
    assert_int_equal(a.len, 3 + 0 + 3 + 0 + 20 + 16);
    assert_memory_equal(a.bytes, "onea\0b-92233720368547758081700000000123456", a.len);
    assert_int_equal(a.ends[0], 3);
    assert_int_equal(a.ends[1], 3);
    assert_int_equal(a.ends[2], 6);
    assert_int_equal(a.ends[5], a.len);
    assert_false(a.failed);
    args_free(&a);
    assert_null(a.bytes);
    args_add(&a, "usable again");
    assert_int_equal(a.count, 1);
    args_free(&a);
}

TEST(clearing_keeps_the_memory)
{
    struct args a = {0};
    const char *bytes;

    for (int i = 0; i < 100000; i++)
        args_add(&a, "0123456789");
    assert_int_equal(a.count, 100000);
    assert_int_equal(a.ends[99999], 1000000);
    bytes = a.bytes;
    args_clear(&a);
    assert_int_equal(a.count, 0);
    assert_int_equal(a.len, 0);
    args_add(&a, "x");
    assert_ptr_equal(a.bytes, bytes);
    args_free(&a);
}

TEST(too_much_is_remembered)
{
    struct args a = {0};

    args_add(&a, "x");
    args_add_bytes(&a, "", SIZE_MAX / 2);
    assert_true(a.failed);
    args_add(&a, "y");
    assert_true(a.failed);
    assert_int_equal(a.count, 1);
    args_clear(&a);
    assert_false(a.failed);
    args_free(&a);
}

TEST(scripts_are_called_by_name)
{
    struct args a = {0};
    char expected[256];

    assert_int_equal(strspn(script_digest, "0123456789abcdef"), 12);
    assert_int_equal(strlen(script_digest), 12);
    snprintf(expected, sizeof expected, "#!lua name=weir_%s\n", script_digest);
    assert_memory_equal(script_library, expected, strlen(expected));
    script_begin(&a, "claim", "p:{0}:", -1);
    snprintf(expected, sizeof expected, "FCALLweir_%s_claim1p:{0}:role:worker", script_digest);
    assert_int_equal(a.count, 5);
    assert_int_equal(a.len, strlen(expected));
    assert_memory_equal(a.bytes, expected, a.len);
    script_begin(&a, "claim", "p:{0}:", 1700000000123456);
    strcat(expected, "1700000000123456");
    assert_int_equal(a.count, 5);
    assert_int_equal(a.len, strlen(expected));
    assert_memory_equal(a.bytes, expected, a.len);
    script_begin(&a, "status", "p:{0}:", -1);
    snprintf(expected, sizeof expected, "FCALL_ROweir_%s_status1p:{0}:", script_digest);
    assert_int_equal(a.len, strlen(expected));
    assert_memory_equal(a.bytes, expected, a.len);
    args_free(&a);
}

/* ---- Error replies */

TEST(faults_are_told_apart)
{
    static const struct {
        const char *text;
        enum redis_fault fault;
        int status;
        const char *says;
    } cases[] = {
        {"ERR Function not found", REDIS_FAULT_NO_FUNCTION, WEIR_ENOTNOW, "FUNCTION FLUSH"},
        {"READONLY You can't write against a read only replica.", REDIS_FAULT_READONLY, WEIR_EUNREACHABLE,
         "master"},
        {"READONLY You can't write against a read only replica. script: weir_8c2_claim, on @user_function:1.",
         REDIS_FAULT_READONLY, WEIR_EUNREACHABLE, "master"},
        {"MASTERDOWN Link with MASTER is down", REDIS_FAULT_READONLY, WEIR_EUNREACHABLE, "master"},
        {"NOREPLICAS Not enough good replicas to write.", REDIS_FAULT_REPLICAS, WEIR_EUNREACHABLE,
         "in sync than its min-replicas-to-write (NOREPLICAS Not enough good replicas to write.); mend"},
        {"UNBLOCKED force unblock from blocking operation", REDIS_FAULT_READONLY, WEIR_EUNREACHABLE,
         "master"},
        {"LOADING Redis is loading the dataset in memory", REDIS_FAULT_LOADING, WEIR_EUNREACHABLE, "loading"},
        {"OOM command not allowed when used memory > 'maxmemory'.", REDIS_FAULT_OOM, WEIR_ENOTNOW,
         "maxmemory; raise"},
        {"BUSY Redis is busy running a script.", REDIS_FAULT_BUSY, WEIR_ENOTNOW, "Weir's own or another's"},
        {"MISCONF Errors writing to the AOF file: No space left on device", REDIS_FAULT_DISK, WEIR_ENOTNOW,
         "No space"},
        {"NOAUTH Authentication required.", REDIS_FAULT_NO_LOGIN, WEIR_EREFUSED, "wants a password"},
        {"WRONGPASS invalid username-password pair", REDIS_FAULT_AUTH, WEIR_EREFUSED, "password"},
        {"NOPERM this user has no permissions to run the 'fcall' command", REDIS_FAULT_RIGHTS, WEIR_EREFUSED,
         "fcall' command; weir doctor prints the ACL rule"},
        {"DENIED Redis is running in protected mode", REDIS_FAULT_AUTH, WEIR_EREFUSED, "protected"},
        {"ERR The user executing the script can't run this command or subcommand script: weir_1_claim, "
         "on @user_function:1.",
         REDIS_FAULT_RIGHTS, WEIR_EREFUSED, "weir doctor prints the ACL rule"},
        {"ERR max number of clients reached", REDIS_FAULT_CLIENTS, WEIR_EUNREACHABLE, "maxclients"},
        {"MOVED 3999 127.0.0.1:6381", REDIS_FAULT_CLUSTER, WEIR_ECONFIG, "cluster"},
        {"CROSSSLOT Keys in request don't hash to the same slot", REDIS_FAULT_CLUSTER, WEIR_ECONFIG,
         "cluster"},
        {"ERR SELECT is not allowed in cluster mode", REDIS_FAULT_CLUSTER, WEIR_ECONFIG, "cluster"},
        {"WRONGTYPE Operation against a key holding the wrong kind of value", REDIS_FAULT_WRONGTYPE,
         WEIR_ECONFIG, "namespace"},
        {"WEIR type: not a name", REDIS_FAULT_WEIR, WEIR_EINPUT, "type: not a name"},
        {"WEIR", REDIS_FAULT_WEIR, WEIR_EINPUT, "WEIR"},
        {"ERR unknown command 'FCALL', with args beginning with: 'weir_1_claim' '1' ", REDIS_FAULT_COMMAND,
         WEIR_ECONFIG, "calls: ERR unknown command 'FCALL'; rename-command took it away"},
        {"ERR Unknown Redis command called from script script: weir_1_claim, on @user_function:1.",
         REDIS_FAULT_COMMAND, WEIR_ECONFIG, "weir doctor names it"},
        {"ERR ACL failure in script: User it has no permissions to run the 'smembers' command script: "
         "weir_1_claim, "
         "on @user_function:1.",
         REDIS_FAULT_RIGHTS, WEIR_EREFUSED, "weir doctor prints the ACL rule"},
        {"ERR Unknown command called from script script: weir_1_claim, on @user_function:1.",
         REDIS_FAULT_COMMAND, WEIR_ECONFIG, "weir doctor names it"},
        {"ERR Script killed by user with SCRIPT KILL... script: weir_1_status, on @user_function:1.",
         REDIS_FAULT_KILLED, WEIR_ENOTNOW, "FUNCTION KILL before it changed anything"},
        {"OOMPH", REDIS_FAULT_OTHER, WEIR_EINTERNAL, "OOMPH"},
        {"", REDIS_FAULT_OTHER, WEIR_EINTERNAL, "unexpected"},
    };
    struct error e;

    for (size_t i = 0; i < COUNT(cases); i++) {
        if (redis_fault(cases[i].text) != cases[i].fault)
            fail_msg("%s: fault %d", cases[i].text, redis_fault(cases[i].text));
        assert_int_equal(redis_fault_error(&e, cases[i].text), cases[i].status);
        assert_int_equal(e.status, cases[i].status);
        fail_if(!strstr(e.text, cases[i].says), "%s: %s", cases[i].text, e.text);
    }
    redis_fault_error(&e, "WEIR type: not a name");
    assert_string_equal(e.text, "type: not a name");
}

/* ---- Clients */

TEST(namespaces)
{
    char prefix[PREFIX_SIZE], longest[129 + 1];
    struct error e;

    assert_int_equal(client_prefix("mail.2-x_Y", prefix, &e), 0);
    assert_string_equal(prefix, "mail.2-x_Y:{0}:");
    unsetenv("WEIR_NAMESPACE");
    assert_int_equal(client_prefix(NULL, prefix, &e), 0);
    assert_string_equal(prefix, "weir:{0}:");
    setenv("WEIR_NAMESPACE", "", 1);
    assert_int_equal(client_prefix(NULL, prefix, &e), 0);
    assert_string_equal(prefix, "weir:{0}:");
    setenv("WEIR_NAMESPACE", "env", 1);
    assert_int_equal(client_prefix(NULL, prefix, &e), 0);
    assert_string_equal(prefix, "env:{0}:");
    unsetenv("WEIR_NAMESPACE");
    memset(longest, 'n', sizeof longest);
    longest[128] = '\0';
    assert_int_equal(client_prefix(longest, prefix, &e), 0);
    assert_int_equal(strlen(prefix), 128 + 5);
    longest[128] = 'n';
    longest[129] = '\0';
    assert_int_equal(client_prefix(longest, prefix, &e), WEIR_ECONFIG);
    assert_int_equal(client_prefix("", prefix, &e), WEIR_ECONFIG);
    assert_int_equal(client_prefix("a:b", prefix, &e), WEIR_ECONFIG);
    assert_int_equal(client_prefix("a b", prefix, &e), WEIR_ECONFIG);
}

TEST(addresses_by_default)
{
    struct redis_address a;
    struct error e;

    unsetenv("REDIS_URL");
    assert_int_equal(client_address(NULL, &a, &e), 0);
    assert_string_equal(a.host, "127.0.0.1");
    assert_int_equal(a.port, 6379);
    setenv("REDIS_URL", "unix:///env", 1);
    assert_int_equal(client_address(NULL, &a, &e), 0);
    assert_string_equal(a.socket_path, "/env");
    assert_int_equal(client_address("/given", &a, &e), 0);
    assert_string_equal(a.socket_path, "/given");
    unsetenv("REDIS_URL");
}

TEST(a_wrong_setup_is_told_by_each_call)
{
    struct weir *w = weir_new("redis://:sesame@h:x", "good");
    struct redisReply *reply;
    struct args a = {0};
    bool sent = true;

    script_begin(&a, "claim", w->prefix, -1);
    assert_string_equal(weir_message(w), "");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(client_call(w, &a, &reply, &sent), WEIR_ECONFIG);
        assert_null(reply);
        assert_false(sent);
        assert_non_null(strstr(weir_message(w), "port"));
    }
    weir_free(w);
    w = weir_new("/x", "not good");
    assert_int_equal(client_call(w, &a, &reply, NULL), WEIR_ECONFIG);
    assert_non_null(strstr(weir_message(w), "namespace"));
    weir_free(w);
    weir_free(NULL);
    args_free(&a);
}

/* ---- Numbers */

/* A library has called setlocale(). */
TEST(numbers_in_another_locale)
{
    char folder[64], text[64], *end;
    struct error e;

    folder_make(folder);
    comma_begin(folder);
    setlocale(LC_ALL, "");
    assert_true(decimal_read("0.9x", &end) == 0.9);
    assert_string_equal(end, "x");
    assert_true(decimal_read("0,9", &end) == 0);
    assert_int_equal(decimal_print(text, sizeof text, "%.1f %g", 0.5, 1e-7), 9);
    assert_string_equal(text, "0.5 1e-07");
    error_set(&e, WEIR_EINPUT, "%g s", 0.25);
    assert_string_equal(e.text, "0.25 s");
    snprintf(text, sizeof text, "%g", 0.5); /* that of the host program stays as it is */
    assert_string_equal(text, "0,5");
    comma_end();
    folder_remove(folder);
}

/* ---- The log */

/* What log_line writes to standard error. */
static void capture(char out[8192], enum log_level level, const char *text)
{
    int saved = dup(STDERR_FILENO), ends[2];
    ssize_t n;

    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    dup2(ends[1], STDERR_FILENO);
    log_line(level, "%s", text);
    dup2(saved, STDERR_FILENO);
    n = read(ends[0], out, 8191);
    out[n > 0 ? n : 0] = '\0';
    close(saved);
    close(ends[0]);
    close(ends[1]);
}

TEST(log_lines)
{
    char out[8192], text[4096];
    int year, month, day, hour, minute, second, ms, at = 0;

    capture(out, LOG_LEVEL_INFO, "hello");
    assert_int_equal(sscanf(out, "time=%4d-%2d-%2dT%2d:%2d:%2d.%3dZ %n", &year, &month, &day, &hour, &minute,
                            &second, &ms, &at),
                     7);
    assert_int_equal(at, 30);
    assert_string_equal(out + at, "level=info msg=hello\n");
    capture(out, LOG_LEVEL_ERROR, "a\nb\tc\x1b[31m\x7f\xc2\x9b\xc3\xa4 \"\\");
    assert_string_equal(out + at,
                        "level=error msg=\"a\\nb\\tc\\u001b[31m\\\\x7f\\\\xc2\\\\x9b\xc3\xa4 \\\"\\\\\"\n");
    capture(out, LOG_LEVEL_WARN, "caf\xe9 \xe2\x82\xac \xed\xa0\x80 \xc3");
    assert_string_equal(out + at,
                        "level=warn msg=\"caf\\\\xe9 \xe2\x82\xac \\\\xed\\\\xa0\\\\x80 \\\\xc3\"\n");
    capture(out, LOG_LEVEL_DEBUG, "dropped");
    assert_string_equal(out, "");
    memset(text, '\n', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    capture(out, LOG_LEVEL_WARN, text);
    assert_in_range(strlen(out), 2000, 2048);
    assert_string_equal(out + strlen(out) - 7, "\\n...\"\n");
}

TEST(lines_with_fields)
{
    static const struct log_field fields[] = {
        {"job", "a\"b\n", 4, false}, {"type", "", 0, false}, {"attempt", "2", 1, true}};
    char line[LOG_LINE_SIZE], text[4096], many[300];
    struct log_field long_ones[20];
    json_t *parsed;
    size_t len;

    len = log_format_line(line, LOG_FORMAT_LOGFMT, 0, LOG_LEVEL_WARN, "late", fields, 3);
    assert_int_equal(
        len,
        strlen("time=1970-01-01T00:00:00.000Z level=warn msg=late job=\"a\\\"b\\n\" type=\"\" attempt=2\n"));
    assert_memory_equal(
        line, "time=1970-01-01T00:00:00.000Z level=warn msg=late job=\"a\\\"b\\n\" type=\"\" attempt=2\n",
        len);
    len = log_format_line(line, LOG_FORMAT_JOURNAL, 0, LOG_LEVEL_WARN, "late", fields + 2, 1);
    assert_memory_equal(line, "<4>level=warn msg=late attempt=2\n", len);
    memset(text, 1, sizeof text - 1); /* as long as it can become */
    text[sizeof text - 1] = '\0';
    memset(many, '"', sizeof many);
    for (int i = 0; i < 20; i++)
        long_ones[i] = (struct log_field){"field", many, sizeof many, false};
    for (int format = LOG_FORMAT_LOGFMT; format <= LOG_FORMAT_JOURNAL; format++)
        for (size_t n = 0; n <= 20; n++) {
            len = log_format_line(line, (enum log_format)format, 0, LOG_LEVEL_INFO, text, long_ones, n);
            assert_in_range(len, 900, LOG_LINE_SIZE);
            assert_int_equal(line[len - 1], '\n');
            parsed = format == LOG_FORMAT_JSON ? json_loadb(line, len, 0, NULL) : json_object();
            assert_non_null(parsed);
            json_decref(parsed);
        }
}

static int count_text(const char *text, const char *what)
{
    int n = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

/* All that is there to be read; text has room for LOG_READ_MOST bytes, and goes on behind len. */
#define LOG_READ_MOST (4 * 1024 * 1024)
static size_t read_on(int fd, char *text, size_t len)
{
    ssize_t n;

    while ((n = read(fd, text + len, LOG_READ_MOST - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    return len;
}

/* Nobody reads standard error, then somebody does: nothing waits, lines stay whole and in order, and those
 * that are missing are told. */
static void log_without_a_reader(bool socket)
{
    enum { LINES = 4000 };
    int saved = dup(STDERR_FILENO), ends[2], next = 0, number, dropped;
    char *text = malloc(LOG_READ_MOST), *at, line[300];
    size_t len;

    assert_int_equal(socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends), 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    dup2(ends[1], STDERR_FILENO);
    alarm(20); /* this is not to wait */
    for (int i = 0; i < LINES; i++)
        log_line(LOG_LEVEL_INFO, "line %d %s", i, line);
    alarm(0);
    len = read_on(ends[0], text, 0);
    log_line(LOG_LEVEL_INFO, "again");
    do {
        len = read_on(ends[0], text, len);
    } while (!log_flush() && len < LOG_READ_MOST - 1);
    len = read_on(ends[0], text, len);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[0]);
    close(ends[1]);

    for (at = text; (at = strstr(at, " level=info msg=\"line ")); at++, next++) {
        assert_int_equal(sscanf(at, " level=info msg=\"line %d", &number), 1);
        assert_int_equal(number, next);
        assert_memory_equal(strchr(at, 'x'), line, sizeof line - 1);
    }
    assert_in_range(next, 200, LINES - 1);
    assert_non_null(at = strstr(text, " level=warn msg=\"log: "));
    assert_int_equal(sscanf(at, " level=warn msg=\"log: %d lines were dropped: nobody read them\"", &dropped),
                     1);
    assert_int_equal(next + dropped, LINES);
    assert_int_equal(count_text(text, "\n"), next + 2);
    assert_non_null(strstr(at, " level=info msg=again\n"));
    assert_int_equal(text[len - 1], '\n');
    free(text);
}

TEST(a_pipe_that_nobody_reads)
{
    log_without_a_reader(false);
}

TEST(a_socket_that_nobody_reads)
{
    log_without_a_reader(true);
}

static void *log_other(void *arg)
{
    log_line(LOG_LEVEL_INFO, "%s", (const char *)arg);
    return NULL;
}

/* Lines that are gathered come at once, in their order, behind or before those of another thread; where more are gathered than are kept, all come. */
TEST(gathered_lines)
{
    enum { LINES = 2000 };
    int saved = dup(STDERR_FILENO);
    char *text = malloc(LOG_READ_MOST), *at = text, number[32];
    FILE *file = tmpfile();
    pthread_t other;
    size_t len;

    assert_non_null(file);
    dup2(fileno(file), STDERR_FILENO);
    log_gather();
    log_line(LOG_LEVEL_INFO, "one");
    log_line(LOG_LEVEL_INFO, "two");
    assert_int_equal(lseek(fileno(file), 0, SEEK_END), 0);
    log_gathered();
    len = (size_t)lseek(fileno(file), 0, SEEK_END);
    assert_true(len > 0);
    log_gather();
    assert_int_equal(pthread_create(&other, NULL, log_other, "three"), 0);
    pthread_join(other, NULL);
    len = (size_t)lseek(fileno(file), 0, SEEK_END);
    assert_true(len > 0);
    log_line(LOG_LEVEL_INFO, "four");
    assert_int_equal(lseek(fileno(file), 0, SEEK_END), len);
    log_gathered();
    log_line(LOG_LEVEL_INFO, "five");
    log_gather();
    for (int i = 0; i < LINES; i++)
        log_line(LOG_LEVEL_INFO, "line %d of many", i);
    log_gathered();
    log_gather();
    log_gathered();
    dup2(saved, STDERR_FILENO);
    close(saved);

    assert_int_equal(lseek(fileno(file), 0, SEEK_SET), 0);
    len = read_on(fileno(file), text, 0);
    fclose(file);
    for (const char *const *word = (const char *const[]){"one", "two", "three", "four", "five", NULL}; *word;
         word++)
        assert_non_null(at = strstr(at, *word));
    for (int i = 0; i < LINES; i++) {
        snprintf(number, sizeof number, "line %d of", i);
        assert_non_null(at = strstr(at, number));
    }
    assert_int_equal(count_text(text, "\n"), LINES + 5);
    assert_int_equal(text[len - 1], '\n');
    free(text);
}

/* A reader that goes away ends nothing. */
TEST(a_pipe_without_a_reader)
{
    int saved = dup(STDERR_FILENO), ends[2];
    char out[8192];

    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    log_line(LOG_LEVEL_INFO, "one");
    close(ends[0]);
    log_line(LOG_LEVEL_INFO, "two");
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    capture(out, LOG_LEVEL_INFO, "three");
    assert_non_null(strstr(out, " level=info msg=two\n"));
    assert_non_null(strstr(out, " level=info msg=three\n"));
}

TEST(times_as_text)
{
    char text[CLOCK_TEXT_SIZE], expected[64];
    struct tm tm;

    for (time_t s = 0; s < 4200000000; s += 86399 * 5) { /* to 2103: 2100 has no leap day, 2000 has */
        gmtime_r(&s, &tm);
        strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%S.007Z", &tm);
        clock_text(s * INT64_C(1000000) + 7999, text);
        assert_string_equal(text, expected);
    }
}

int main(void)
{
    unsetenv("WEIR_LOG");
    return tests_run(NULL, NULL);
}
