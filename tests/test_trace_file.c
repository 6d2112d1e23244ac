/* Files of traces: what is no trace, what is torn, and what a full disk or a pipe that nobody reads costs. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/program.h"
#include "tests/test.h"
#include "tests/traces.h"
#include "worker/way/trace.h"

TEST(test_malformed_lines_are_named)
{
    static const struct {
        const char *line;
        const char *says;
    } cases[] = {
        {"", "not a JSON object"},
        {"x", "not a JSON object"},
        {"\xef\xbb\xbf{}", "byte order mark (BOM)"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\"", "not JSON"},
        {"{\"slot\":1,\"slot\":1,\"start\":1,\"type\":\"a\"}", "not JSON"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\"} {}", "not JSON"},
        {"[]", "not a JSON object"},
        {"{}", "neither start nor end, spent, back, opened, lapsed or lost"},
        {"{\"slot\":1,\"start\":1}", "type is missing"},
        {"{\"slot\":1,\"start\":1,\"type\":7}", "type is missing, or type or id is not a string"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\",\"id\":1}", "type or id is not a string"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a b\"}", "type 'a b'"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\",\"limits\":null}", "limits must be a string"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\",\"limits\":\"a\"}", "'a' is not limit=rules"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\",\"limits\":\"a=1/s\"}", "1/s"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\",\"limits\":\"a b=concurrency:1\"}", "limit 'a b'"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\",\"key\":\"a/b\"}", "key 'a/b'"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\",\"key\":1}", "key must be a string"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\",\"cost\":0}", "cost must be a whole number"},
        {"{\"slot\":1,\"type\":\"a\"}", "neither start"},
        {"{\"slot\":1,\"start\":\"1\",\"type\":\"a\"}", "start must be a time"},
        {"{\"start\":1,\"type\":\"a\",\"limits\":\"a=concurrency:1\"}", "slot must be a time"},
        {"{\"slot\":0,\"start\":1,\"type\":\"a\",\"limits\":\"a=concurrency:1\"}", "slot must be a time"},
        {"{\"slot\":1.5,\"start\":1,\"type\":\"a\",\"limits\":\"a=concurrency:1\"}", "slot must be a time"},
        {"{\"slot\":1,\"start\":9007199254740992,\"type\":\"a\"}", "start must be a time"},
        {"{\"end\":1}", "type is missing"},
        {"{\"end\":-1,\"type\":\"a\",\"id\":\"1\"}", "end must be a time"},
        {"{\"spent\":-1,\"type\":\"a\",\"id\":\"1\"}", "spent must be a whole number"},
        {"{\"slot\":1,\"ahead\":-1,\"start\":1,\"type\":\"a\",\"limits\":\"a=concurrency:1\"}",
         "ahead must be a time"},
        {"{\"slot\":1,\"good\":1000000001,\"start\":1,\"type\":\"a\",\"limits\":\"a=concurrency:1\"}",
         "good must be a time"},
        {"{\"lapsed\":-1}", "lapsed must be a time"},
        {"{\"opened\":null}", "opened must be a time"},
        {"{\"lost\":0}", "lost must be a number of lines"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char where[128];
        size_t torn_line;
        struct verify v;
        const char *text =
            textf("{\"start\":1,\"type\":\"a\"}\n%s\n{\"start\":1,\"type\":\"a\"}\n", cases[i].line);

        traces_write(text);
        snprintf(where, sizeof where, "%s:2: ", trace_paths[0]);
        assert_int_equal(verify_init(&v, &trace_error), 0);
        assert_int_equal(verify_read(&v, trace_paths[0], &torn_line, &trace_error), WEIR_EINPUT);
        if (strncmp(trace_error.text, where, strlen(where)) != 0 || !strstr(trace_error.text, cases[i].says))
            fail_msg("%s: %s", cases[i].line, trace_error.text);
        verify_free(&v);
    }
}

TEST(test_a_torn_last_line_is_passed_over)
{
    static const struct {
        const char *text;
        size_t torn_line;
        uint64_t starts;
    } cases[] = {
        {"{\"start\":1,\"type\":\"a\"}\n{\"start\":2,\"ty", 2, 1},
        {"{\"start\":1,\"type\":\"a\"}\n{\"start\":2,\"type\":\"a\"}", 0, 2}, /* whole, but for its end */
        {"{", 1, 0},
        {"", 0, 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t torn_line;
        struct verify v;

        traces_write(cases[i].text);
        assert_int_equal(verify_init(&v, &trace_error), 0);
        assert_int_equal(verify_read(&v, trace_paths[0], &torn_line, &trace_error), 0);
        assert_int_equal(torn_line, cases[i].torn_line);
        assert_int_equal(verify_replay(&v, &trace_error), 0);
        assert_int_equal(v.starts, cases[i].starts);
        verify_free(&v);
    }
}

TEST(test_a_torn_first_line_is_passed_over)
{
#define WHOLE "{\"start\":1,\"type\":\"a\"}\n"
    static const struct {
        const char *text;
        bool taken;
        size_t torn_line;
        uint64_t starts;
    } cases[] = {
        {"art\":1,\"type\":\"a\"}\n" WHOLE WHOLE, true, 0, 2},
        {"{\"start\":1,\"ty\n" WHOLE, true, 0, 1},
        {"}\n" WHOLE, true, 0, 1},
        {"\n" WHOLE, true, 0, 1},
        {"art\":1,\"type\":\"a\"}\n" WHOLE "{\"start\":1,", true, 3, 1},
        {"art\":1,\"type\":\"a\"}\n{\"start\":1,", true, 2, 0},
        {"art\":1,\"type\":\"a\"}\n", false, 0, 0}, /* nothing follows */
        {"{\"start\":1,\"ty\n", false, 0, 0},
        {"art\":1}\nart\":1}\n" WHOLE, false, 0, 0}, /* not only the first */
        {"a\tb\n" WHOLE, false, 0, 0},
        {"{\"start\":1}\n" WHOLE, false, 0, 0}, /* a line, and wrong */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t torn_line;
        struct verify v;

        traces_write(cases[i].text);
        assert_int_equal(verify_init(&v, &trace_error), 0);
        if ((verify_read(&v, trace_paths[0], &torn_line, &trace_error) == 0) != cases[i].taken)
            fail_msg("case %zu: %s", i, trace_error.text);
        if (cases[i].taken) {
            assert_true(v.torn_first);
            assert_int_equal(torn_line, cases[i].torn_line);
            assert_int_equal(verify_replay(&v, &trace_error), 0);
            assert_int_equal(v.starts, cases[i].starts);
            traces_write(WHOLE);
            assert_int_equal(verify_read(&v, trace_paths[0], &torn_line, &trace_error), 0);
            assert_false(v.torn_first);
        }
        verify_free(&v);
    }
}

/* Members that nobody knows, however many, are passed over; twice, and the one slot of a minute is violated.
 */
TEST(test_many_members)
{
    enum { LEAST = 10, MOST = 60 };

    for (int count = LEAST; count < MOST; count++) {
        char text[4096] = "";

        for (int line = 0; line < 2; line++) {
            strcat(text, "{\"slot\":1795000000000000,\"start\":1795000000000000");
            for (int i = 0; i < count; i++)
                sprintf(text + strlen(text), ",\"member%d\":%d", i, i);
            strcat(text, ",\"type\":\"a\",\"id\":\"1\",\"limits\":\"a=sliding-log:1/60000000\"}\n");
        }
        traces_write(text);
        replay(1);
        assert_int_equal(verified.starts, 2);
        assert_int_equal(verified.violations, 1);
    }
}

/* So many bytes may a file have: a disk that is full in the middle of a line. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void trace_some(struct trace *trace, int n)
{
    struct task task = {.limits = "a=gcra:1000000/1000000/1000000",
                        .cost = 1,
                        .view = {.type = {"mail", 4}, .id = {"j1", 2}}};

    for (int i = 0; i < n; i++) {
        task.slot_us = clock_wall_us();
        trace_start(trace, &task);
    }
    trace_flush(trace);
}

/* What the log says while steps(arg) runs. */
static void log_of(void (*steps)(void *arg), void *arg, char log[4096])
{
    int ends[2], standard_error = dup(STDERR_FILENO);
    ssize_t len;

    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    dup2(ends[1], STDERR_FILENO);
    steps(arg);
    dup2(standard_error, STDERR_FILENO);
    close(standard_error);
    close(ends[1]);
    len = read(ends[0], log, 4095);
    log[len > 0 ? len : 0] = '\0';
    close(ends[0]);
}

static void assert_says(const char *log, const char *const *says, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = strstr(log, says[i]);

        if (!at)
            fail_msg("%zu: no \"%s\" in %s", i, says[i], log);
        log = at + strlen(says[i]);
    }
    assert_null(strstr(log, "trace:"));
}

static off_t size_of(const char *path)
{
    struct stat file;

    assert_int_equal(stat(path, &file), 0);
    return file.st_size;
}

/* The end of a line that another worker is just writing is not cut; one that nobody will end is. */
TEST(test_a_line_that_is_being_written_stays)
{
    static const char half[] = "{\"slot\":1";
    struct trace *other, *mine;
    int fd;

    unlink(trace_paths[0]);
    other = trace_open(trace_paths[0], &trace_error);
    assert_non_null(other);
    trace_flush(other);
    fd = open(trace_paths[0], O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, half, sizeof half - 1), sizeof half - 1);
    for (int others = 1; others >= 0; others--) {
        off_t before = size_of(trace_paths[0]);

        mine = trace_open(trace_paths[0], &trace_error);
        assert_non_null(mine);
        assert_int_equal(before - size_of(trace_paths[0]), others ? 0 : sizeof half - 1);
        if (others)
            trace_close(other);
        trace_close(mine);
        if (others)
            assert_int_equal(write(fd, half, sizeof half - 1), sizeof half - 1);
    }
    close(fd);
}

static void fill_the_disk_for_a_while(void *arg)
{
    struct trace *trace = trace_open(trace_paths[0], &trace_error);
    struct stat file;

    (void)arg;
    assert_non_null(trace);
    for (int times = 0; times < 2; times++) {
        trace_some(trace, 1);
        stat(trace_paths[0], &file);
        limit_files((rlim_t)file.st_size + 200); /* a line has some 120 bytes */
        trace_some(trace, 3);
        trace_some(trace, 3);
        limit_files(RLIM_INFINITY);
        trace_some(trace, 2);
    }
    trace_close(trace);
}

/* What cannot be written for a while is written later, torn lines too; and no signal ends the worker. */
TEST(test_a_full_disk_for_a_while_costs_nothing)
{
    char log[4096];

    signal(SIGXFSZ, SIG_DFL);
    unlink(trace_paths[0]);
    log_of(fill_the_disk_for_a_while, NULL, log);
    assert_string_equal(log, "");
    replay(1);
    assert_int_equal(verified.starts, 2 * (1 + 3 + 3 + 2));
    assert_int_equal(verified.lost, 0);
}

#define STARTS_MANY 20000 /* more than are kept */

static void fill_the_disk_for_long(void *arg)
{
    struct trace *trace = trace_open(trace_paths[0], &trace_error);
    const bool *for_good = arg;

    assert_non_null(trace);
    limit_files(1000);
    trace_some(trace, STARTS_MANY);
    trace_some(trace, 1);
    if (!*for_good)
        limit_files(RLIM_INFINITY);
    trace_flush(trace);
    if (!*for_good)
        trace_some(trace, 1);
    trace_close(trace);
    limit_files(RLIM_INFINITY);
}

/* All lines that were given to the trace are there or counted as lost: the line opened and n starts. */
static void assert_gap(uint64_t n, bool opened)
{
    replay(1);

    assert_in_range(verified.lost, n / 4, n);
    assert_int_equal(verified.starts + verified.lost + opened, n + 1);
}

TEST(test_what_a_full_disk_has_cost_is_counted)
{
    static const char *const says[] = {"trace: File too large; lines are lost, jobs run on",
                                       "trace: lines are kept again; "};
    char log[4096];
    bool for_good = false;

    signal(SIGXFSZ, SIG_DFL);
    unlink(trace_paths[0]);
    log_of(fill_the_disk_for_long, &for_good, log);
    assert_says(log, says, COUNT(says));
    assert_gap(STARTS_MANY + 2, true);
}

/* The mark of the gap has room all the same. */
TEST(test_a_file_that_never_grows_again)
{
    static const char *const says[] = {"trace: File too large; lines are lost, jobs run on",
                                       "trace: File too large; its last "};
    char log[4096];
    bool for_good = true;
    struct outcome o;

    unlink(trace_paths[0]);
    log_of(fill_the_disk_for_long, &for_good, log);
    assert_says(log, says, COUNT(says));
    assert_gap(STARTS_MANY + 1, true);
    run_in(&o, NULL, built("weir"), "verify", trace_paths[0], "--json", NULL);
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.err, " lines could not be written; starts that are missing are not judged"));
    assert_non_null(strstr(o.out, "\"lost\":"));
}

/* Reads what is there, to the end of trace_paths[0]. */
static void copy(int fd)
{
    int to = open(trace_paths[0], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    char bytes[65536];
    ssize_t n;

    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        assert_int_equal(write(to, bytes, (size_t)n), n);
    close(to);
}

static void trace_to_a_pipe(void *arg)
{
    int reader = *(int *)arg;
    struct trace *trace = trace_open(trace_paths[1], &trace_error);

    assert_non_null(trace);
    alarm(20); /* this is not to wait */
    trace_some(trace, STARTS_MANY);
    alarm(0);
    copy(reader);
    for (int i = 0; i < 100; i++) {
        trace_flush(trace);
        copy(reader);
    }
    trace_some(trace, 1);
    trace_close(trace);
    copy(reader);
}

TEST(test_a_pipe_that_nobody_reads)
{
    static const char *const says[] = {"trace: nobody reads it; lines are lost, jobs run on",
                                       "trace: lines are kept again; "};
    char log[4096];
    int reader;

    unlink(trace_paths[0]);
    unlink(trace_paths[1]);
    assert_int_equal(mkfifo(trace_paths[1], 0600), 0);
    reader = open(trace_paths[1], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    log_of(trace_to_a_pipe, &reader, log);
    close(reader);
    unlink(trace_paths[1]);
    assert_says(log, says, COUNT(says));
    assert_gap(STARTS_MANY + 1, true);
}

TEST(test_a_file_that_cannot_be_read)
{
    size_t torn_line;
    struct verify v;

    assert_int_equal(verify_init(&v, &trace_error), 0);
    assert_int_equal(verify_read(&v, "/nowhere/trace", &torn_line, &trace_error), WEIR_EINPUT);
    assert_non_null(strstr(trace_error.text, "/nowhere/trace: cannot be opened: No such file"));
    assert_int_equal(verify_read(&v, trace_folder, &torn_line, &trace_error), WEIR_EINPUT);
    assert_non_null(strstr(trace_error.text, "Is a directory"));
    verify_free(&v);
}

TESTS(traces_begin, traces_end)
