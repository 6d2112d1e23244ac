/* Children that stay (--pipe): what they get, what their answers mean, how they die and what becomes of the
 * jobs that were in them. */
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/stage.h"

/* A child that does with a job what its args say, in this order:
 *   "record"     appends the line to the file lines
 *   "err":TEXT   writes to standard error
 *   "hold":N     no answer until N jobs are held; then to all of them, the last one first
 *   "say":TEXT   writes TEXT instead of its own answer; "times":N so often
 *   "close"      closes standard output
 *   "fork"       starts a process that stays, its number in the file grandchild
 *   "sleep":S    takes so long
 *   "exit":N, "kill":N      ends, by an exit code or a signal; "once":NAME only if there is no file NAME yet
 *   "answer":{}  what it answers besides the id; {"status":"done"} */
static const char child_text[] =
    "import json, os, subprocess, sys, time\n"
    "held = []\n"
    "open('pids', 'a').write('%d\\n' % os.getpid())\n"
    "def write(text):\n"
    "    sys.stdout.write(text)\n"
    "    sys.stdout.flush()\n"
    "def is_first(name):\n"
    "    try:\n"
    "        return name is None or os.close(os.open(name, os.O_CREAT | os.O_EXCL)) is None\n"
    "    except FileExistsError:\n"
    "        return False\n"
    "def run(line, job, args):\n"
    "    if 'record' in args:\n"
    "        open('lines', 'ab').write(line)\n"
    "    if 'err' in args:\n"
    "        sys.stderr.write(args['err'])\n"
    "        sys.stderr.flush()\n"
    "    answer = {'id': job['id'], **args.get('answer', {'status': 'done'})}\n"
    "    text = args.get('say', json.dumps(answer) + '\\n') * args.get('times', 1)\n"
    "    if 'hold' in args:\n"
    "        held.insert(0, text)\n"
    "        text = ''\n"
    "        if len(held) == args['hold']:\n"
    "            text = ''.join(held)\n"
    "            held.clear()\n"
    "    if 'close' in args:\n"
    "        os.close(1)\n"
    "        time.sleep(1000)\n"
    "    if 'fork' in args:\n"
    "        sleep = subprocess.Popen(['sleep', '1000'])\n"
    "        open('grandchild', 'w').write('%d\\n' % sleep.pid)\n"
    "    if 'sleep' in args:\n"
    "        open('sleeping', 'a').write('%d\\n' % os.getpid())\n"
    "        time.sleep(args['sleep'])\n"
    "    if ('exit' in args or 'kill' in args) and is_first(args.get('once')):\n"
    "        if 'kill' in args:\n"
    "            os.kill(os.getpid(), args['kill'])\n"
    "        os._exit(args['exit'])\n"
    "    write(text)\n"
    "for line in sys.stdin.buffer:\n"
    "    job = json.loads(line)\n"
    "    run(line, job, job.get('args') or {})\n"
    "open('ended', 'a').write('%d\\n' % os.getpid())\n";

static int open_stage(void **state)
{
    struct stage *s;

    stage_setup(state);
    s = *state;
    write_text(s->server.folder, "child.py", child_text);
    return 0;
}

/* A worker whose jobs of type "run" go to such children. */
static pid_t start_worker(struct stage *s, const char *executors, const char *in_flight)
{
    return stage_weir(s, "worker", "--pipe", "run=python3 child.py", "-c", executors, "--in-flight",
                      in_flight, "--kill-after", "500ms", NULL);
}

static void push(struct stage *s, int number, const char *args)
{
    stage_run(s, number, args, 0, 0);
}

static void assert_told(struct stage *s, const char *text)
{
    await_log(s->server.folder, text);
}

static bool was_told(struct stage *s, const char *text)
{
    char log[65536];

    return read_log(s->server.folder, log, sizeof log) && strstr(log, text);
}

/* ---- What it gets */

/* One line whatever stands between the tokens, and nothing else of it changed. */
STAGE_TEST_WITH(a_job_is_one_line, open_stage, stage_teardown)
{
    char lines[4096];

    start_worker(s, "1", "1");
    stage_push_text(s, "{\"id\":\"j0\",\"type\":\"run\",\r\n\t\"args\":{\"record\": 1.50,\n\"e\":[]},"
                       "\"text\":\"a\\n\xe2\x80\xa8\",\"other\":1234567890123456789}");
    stage_push_text(s, " {\"type\":\"run\",\"attempt\":\"mine\",\"id\":\"j1\",\"args\":{\"record\":1}}");
    stage_push_stamped(s, INT64_C(1763900000050000),
                       "{\"id\":\"j2\",\"type\":\"run\",\"args\":{\"record\":1}}");
    await(stage_stat(s, "run", "done") == 3);
    assert_true(read_text(s->server.folder, "lines", lines, sizeof lines));
    assert_string_equal(lines,
                        "{\"attempt\":1,\"id\":\"j0\",\"type\":\"run\",  \t\"args\":{\"record\": 1.50, "
                        "\"e\":[]},\"text\":\"a\\n\xe2\x80\xa8\",\"other\":1234567890123456789}\n"
                        " {\"type\":\"run\",\"attempt\":\"mine\",\"id\":\"j1\",\"args\":{\"record\":1}}\n"
                        "{\"attempt\":1,\"enqueued_at\":1763900000.05,\"id\":\"j2\",\"type\":\"run\","
                        "\"args\":{\"record\":1}}\n");
}

STAGE_TEST_WITH(a_job_larger_than_a_pipe, open_stage, stage_teardown)
{
    char *args = malloc(900001);

    start_worker(s, "8", "8");
    memset(args, '7', 900000);
    memcpy(args, "{\"x\":\"", 6);
    memcpy(args + 899998, "\"}", 3);
    for (int i = 0; i < 8; i++)
        push(s, i, args);
    free(args);
    await(stage_stat(s, "run", "done") == 8);
    assert_int_equal(stage_lines(s, "pids"), 1);
}

/* ---- What its answers mean */

STAGE_TEST_WITH(every_status, open_stage, stage_teardown)
{
    char lines[4096];

    start_worker(s, "1", "1");
    push(s, 0, "{\"answer\":{\"status\":\"done\",\"reason\":\"not kept\"}}");
    stage_run(s, 1, "{\"answer\":{\"status\":\"retry\",\"reason\":\"no\\nluck\"}}", 1, 0);
    push(s, 2, "{\"answer\":{\"status\":\"dead\",\"reason\":\"no such customer\"}}");
    push(s, 3, "{\"answer\":{\"status\":\"dead\"}}");
    stage_run(s, 4, "{\"record\":1,\"answer\":{\"status\":\"retry\",\"after\":0.05}}", 3, 0);
    await(stage_stat(s, "run", "dead") == 4);
    assert_int_equal(stage_stat(s, "run", "done"), 1);
    stage_died(s, 1, "failed once: no luck");
    stage_died(s, 2, "no such customer");
    stage_died(s, 3, "failed for good");
    stage_died(s, 4, "failed 3 times");
    assert_true(read_text(s->server.folder, "lines", lines, sizeof lines));
    for (int attempt = 1; attempt <= 3; attempt++) {
        char begin[48];

        snprintf(begin, sizeof begin, "{\"attempt\":%d,\"enqueued_at\":", attempt);
        assert_non_null(strstr(lines, begin));
    }
    stage_push(s, "run", "{\"record\":1,\"answer\":{\"status\":\"throttled\",\"after\":0.2}}", 5, 1);
    await(stage_lines(s, "lines") >= 5);
    assert_int_equal(stage_stat(s, "run", "retried"), 2);
    assert_true(read_text(s->server.folder, "lines", lines, sizeof lines));
    assert_non_null(strstr(lines, "{\"attempt\":1,\"id\":\"j5\""));
    assert_null(strstr(lines, "{\"attempt\":2,\"id\":\"j5\""));
    assert_int_equal(stage_lines(s, "pids"), 1);
}

/* What a job cost in truth goes to its limit. */
STAGE_TEST_WITH(the_true_cost, open_stage, stage_teardown)
{
    pid_t worker;

    stage_rate(s, "run", "100/s");
    worker = stage_weir(s, "worker", "--pipe", "run=python3 child.py", "--trace", "trace", NULL);
    push(s, 0, "{\"answer\":{\"status\":\"done\",\"cost\":7}}");
    push(s, 1, "{\"answer\":{\"status\":\"done\",\"cost\":0}}");
    await(stage_stat(s, "run", "done") == 2);
    assert_int_equal(stage_end(worker), 0);
    await_text(s->server.folder, "trace", "{\"spent\":7,");
    await_text(s->server.folder, "trace", "{\"spent\":0,");
}

/* The line is told, the child stays, the job waits for its own answer. */
STAGE_TEST_WITH(lines_that_are_no_answers, open_stage, stage_teardown)
{
    static const struct {
        const char *say, *told;
    } cases[] = {
        {"hello\\n", "wrong answer: not a JSON object: hello"},
        {"[1]\\n", "wrong answer: not a JSON object: [1]"},
        {"{\\\"id\\\":\\\"other\\\",\\\"status\\\":\\\"done\\\"}\\n",
         "no job of that id waits for one: {\"id\":\"other\""},
        {"{\\\"status\\\":\\\"done\\\"}\\n", "no job of that id waits for one: {\"status\""},
        {"{\\\"id\\\":7,\\\"status\\\":\\\"done\\\"}\\n", "no job of that id waits for one: {\"id\":7"},
        {"\\u0001\\u001b[31m\\n", "wrong answer: not a JSON object: "},
        {"{\\\"id\\\":\\\"j6\\\\udcff\\\",\\\"status\\\":\\\"done\\\"}\\n",
         "no job of that id waits for one: {\"id\":\"j6\\udcff\""},
        {"{\\\"status\\\":\\\"done\\\",\\\"id\\\":\\\"j7\\n", "wrong answer: not a JSON object: {\"status\""},
    };

    start_worker(s, "1", "1");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char args[512];

        snprintf(args, sizeof args,
                 "{\"say\":\"%s{\\\"id\\\":\\\"j%zu\\\",\\\"status\\\":\\\"done\\\"}\\n\"}", cases[i].say, i);
        push(s, (int)i, args);
        assert_told(s, cases[i].told);
        await(stage_stat(s, "run", "done") == (int)i + 1);
    }
    push(s, 20, "{\"say\":\"\\n\\r\\n{\\\"id\\\":\\\"j20\\\",\\\"status\\\":\\\"done\\\"}\\r\\n\"}");
    await(stage_stat(s, "run", "done") == sizeof cases / sizeof *cases + 1);
    assert_int_equal(stage_lines(s, "pids"), 1);
}

/* A language without types writes the id "1" as a number, and loses the zeros of "007" and the last digits of a long one. */
STAGE_TEST_WITH(an_id_that_is_a_number, open_stage, stage_teardown)
{
    static const struct {
        const char *id, *say;
    } cases[] = {
        {"1", "{\\\"id\\\":1,\\\"status\\\":\\\"done\\\"}"},
        {"007", "{\\\"id\\\":7,\\\"status\\\":\\\"done\\\"}"},
        {"12345678901234567891", "{\\\"status\\\":\\\"done\\\",\\\"id\\\":12345678901234567000}"},
        {"1e3", "{\\\"id\\\":1000,\\\"status\\\":\\\"done\\\"}"},
        {"-5", "{\\\"id\\\":-5.0,\\\"status\\\":\\\"done\\\"}"},
    };
    char text[512];

    start_worker(s, "1", "1");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "{\"id\":\"%s\",\"type\":\"run\",\"args\":{\"say\":\"%s\\n\"}}",
                 cases[i].id, cases[i].say);
        stage_push_text(s, text);
        await(stage_stat(s, "run", "done") == (int)i + 1);
    }
}

/* One of two has ended, and nobody knows which: an answer of the first one, which failed. What is exactly so is no other. */
STAGE_TEST_WITH(a_number_that_two_jobs_have, open_stage, stage_teardown)
{
    write_text(s->server.folder, "pair.py",
               "import sys, json\n"
               "a, b = sys.stdin.readline(), sys.stdin.readline()\n"
               "print('{\"id\":7.0,\"status\":\"done\"}', flush=True)\n"
               "print('{\"id\":7,\"status\":\"done\"}', flush=True)\n"
               "sys.stdin.read()\n");
    stage_push_text(s, "{\"id\":\"07\",\"type\":\"run\",\"max_attempts\":1}");
    stage_push_text(s, "{\"id\":\"7\",\"type\":\"run\",\"max_attempts\":1}");
    stage_weir(s, "worker", "--pipe", "run=python3 pair.py", "-c", "2", "--in-flight", "2", NULL);
    await(stage_stat(s, "run", "dead") == 1 && stage_stat(s, "run", "done") == 1);
    assert_told(s, "wrong answer: ambiguous: several jobs have that number as id");
}

/* The job was answered, only how is not known: it failed. */
STAGE_TEST_WITH(an_unknown_status_is_a_failure, open_stage, stage_teardown)
{
    start_worker(s, "1", "1");
    stage_run(s, 0, "{\"answer\":{\"status\":\"ok\"}}", 1, 0);
    stage_run(s, 1, "{\"answer\":{}}", 1, 0);
    stage_run(s, 2, "{\"answer\":{\"status\":\"retry\",\"after\":\"soon\",\"reason\":[]}}", 1, 0);
    await(stage_stat(s, "run", "dead") == 3);
    stage_died(s, 0, "failed once: its handler answered without a status of done, retry, dead, throttled");
    stage_died(s, 1, "failed once: its handler answered without a status");
    stage_died(s, 2, "failed once");
    assert_told(s, "wrong answer: no such status: {\"id\": \"j0\", \"status\": \"ok\"}");
    assert_int_equal(stage_lines(s, "pids"), 1);
}

/* A traceback as the reason: it begins as given, and its last line stays. */
STAGE_TEST_WITH(a_long_reason_keeps_its_end, open_stage, stage_teardown)
{
    char body[3000] = "{\"answer\":{\"status\":\"dead\",\"reason\":\"Traceback:";

    while (strlen(body) < 2500)
        strcat(body, " File \\\"mail.py\\\", line 12");
    strcat(body, " ValueError: no such customer\"}}");
    stage_run(s, 0, body, 1, 0);
    start_worker(s, "1", "1");
    await(stage_stat(s, "run", "dead") == 1);
    assert_non_null(strstr(stage_death(s, 0), " Traceback: File \"mail.py\", line 12 "));
    assert_non_null(strstr(stage_death(s, 0), " line 12 ValueError: no such customer"));
    assert_in_range(strlen(stage_death(s, 0)), 1000, 1250);
}

/* Answers as they are given, one for each job. The first fault of a line is nobody else's: the job that it
 * names has ended. */
STAGE_TEST_WITH(answers_with_wrong_characters, open_stage, stage_teardown)
{
    static const struct {
        const char *answer, *death; /* NULL: done */
    } cases[] = {
        {"{\"id\":\"j0\",\"status\":\"dead\",\"reason\":\"it said \\udcff\\ud83d.\"}", "it said ??."},
        {"{\"reason\":\"a\\u0000b\",\"status\":\"dead\",\"id\":\"j1\"}", " a?b"},
        {"{\"id\":\"j2\",\"status\":\"dead\",\"reason\":\"caf\xe9\t\xc3\xa9 \\q\"}", "caf? \xc3\xa9 ?"},
        {"{\"id\":\"j3\",\"x\":[\"\\ud83d\"],\"\\udcff\":\"\xff\",\"n\":1e999,\"status\":\"done\"}", NULL},
        {"{\"\\u0069d\":\"\\u006a4\",\"status\":\"done\",\"after\":1e999}", NULL},
        {"{\"id\":\"j5\",\"status\":\"done\"",
         "failed once: its handler's answer is not JSON: a comma or } is missing at byte 27"},
        {"{\"id\":\"j6\",\"status\":done}", "answer is not JSON: no value begins at byte 21"},
        {"{\"id\":\"j7\",\"status\":\"done\"}!", "answer is not JSON: something follows"},
        {"{\"id\":\"j8\",\"status\":\"done\",\"status\":\"dead\"}", "failed for good"},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    char answers[2048] = "";

    for (int i = 0; i < CASES; i++) {
        strcat(strcat(answers, cases[i].answer), "\n");
        stage_run(s, i, "{}", 1, 0);
    }
    write_text(s->server.folder, "answers", answers);
    write_text(s->server.folder, "answer.py",
               "import sys\n"
               "answers = open('answers', 'rb')\n"
               "for line in sys.stdin:\n"
               "    sys.stdout.buffer.write(answers.readline())\n"
               "    sys.stdout.buffer.flush()\n");
    stage_weir(s, "worker", "--pipe", "run=python3 answer.py", "-c", "1", NULL);
    await(stage_stat(s, "run", "dead") + stage_stat(s, "run", "done") == CASES);
    for (int i = 0; i < CASES; i++)
        if (cases[i].death)
            stage_died(s, i, cases[i].death);
        else
            assert_string_equal(stage_death(s, i), "");
    assert_told(s, "run j4: wrong answer: \"after\" must");
    assert_told(s, "wrong answer: not JSON: a comma or } is missing at byte 27: {\"id\":\"j5\"");
    assert_false(was_told(s, "died"));
}

/* The member is told and left out, the status stands. */
STAGE_TEST_WITH(wrong_members_are_left_out, open_stage, stage_teardown)
{
    static const struct {
        const char *member, *told; /* NULL: nothing */
    } cases[] = {
        {"\"cost\":null,\"after\":null,\"reason\":null", NULL},
        {"\"cost\":-3", "\"cost\" must be a whole number from 0 to 1000000000"},
        {"\"cost\":1.5", "\"cost\" must"},
        {"\"cost\":\"x\"", "\"cost\" must"},
        {"\"cost\":true", "\"cost\" must"},
        {"\"cost\":1000000001", "\"cost\" must"},
        {"\"after\":-1", "\"after\" must be a number of seconds, 0 or more"},
        {"\"after\":\"soon\"", "\"after\" must"},
        {"\"reason\":[]", "\"reason\" must be a string"},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    pid_t worker;
    char log[65536], trace[16384];

    stage_rate(s, "run", "100/s");
    worker = stage_weir(s, "worker", "--pipe", "run=python3 child.py", "--trace", "trace", NULL);
    for (int i = 0; i < CASES; i++) {
        char args[256];

        snprintf(args, sizeof args, "{\"answer\":{\"status\":\"done\",%s}}", cases[i].member);
        push(s, i, args);
    }
    push(s, CASES,
         "{\"say\":\"{\\\"id\\\":\\\"j9\\\",\\\"status\\\":\\\"done\\\",\\\"cost\\\":99999999999999999999}"
         "\\n\"}");
    await(stage_stat(s, "run", "done") == CASES + 1);
    push(s, CASES + 1,
         "{\"answer\":{\"status\":\"done\",\"cost\":1000000000}}"); /* no other starts after it */
    await(stage_stat(s, "run", "done") == CASES + 2);
    assert_int_equal(stage_end(worker), 0);
    assert_true(read_log(s->server.folder, log, sizeof log));
    for (int i = 0; i < CASES; i++) {
        char told[128];

        snprintf(told, sizeof told, "run j%d: wrong answer: %s", i, cases[i].told ? cases[i].told : "");
        if (!strstr(log, told) != !cases[i].told)
            fail_msg("%s: %s in the log: %s", cases[i].member, told, log);
    }
    assert_non_null(
        strstr(log, ", and counts as left out: {\"id\": \"j1\", \"status\": \"done\", \"cost\": -3}"));
    assert_non_null(strstr(log, "run j9: wrong answer: \"cost\" must"));
    assert_true(read_text(s->server.folder, "trace", trace, sizeof trace));
    assert_non_null(strstr(trace, "{\"spent\":1000000000,"));
    assert_null(strstr(strstr(trace, "{\"spent\":") + 1, "{\"spent\":"));
}

STAGE_TEST_WITH(a_child_that_babbles_is_ended, open_stage, stage_teardown)
{
    start_worker(s, "1", "1");
    push(s, 0, "{\"say\":\"hello\\n\",\"times\":99999}");
    await(stage_stat(s, "run", "dead") == 1);
    stage_died(s, 0, "its handler died 3 times: it wrote 100 lines in a row that are no answers");
    push(s, 1, "{}");
    await(stage_stat(s, "run", "done") == 1);
    assert_int_equal(stage_lines(s, "pids"), 4);
}

STAGE_TEST_WITH(a_line_without_end, open_stage, stage_teardown)
{
    start_worker(s, "1", "1");
    push(s, 0, "{\"say\":\"0123456789\",\"times\":300000}");
    await(stage_stat(s, "run", "dead") == 1);
    stage_died(s, 0, "its handler died 3 times: it wrote a line of more than 1 MiB");
    push(s, 1, "{}");
    await(stage_stat(s, "run", "done") == 1);
}

/* ---- Several at a time */

STAGE_TEST_WITH(answers_in_any_order, open_stage, stage_teardown)
{
    start_worker(s, "100", "100");
    for (int i = 0; i < 100; i++)
        push(s, i, "{\"hold\":100}");
    await(stage_stat(s, "run", "done") == 100);
    assert_int_equal(stage_lines(s, "pids"), 1);
    assert_false(was_told(s, "wrong answer"));
}

/* Two jobs with one id: the first answer is for the first one. */
STAGE_TEST_WITH(the_same_id_twice, open_stage, stage_teardown)
{
    start_worker(s, "2", "2");
    stage_push_text(s, "{\"id\":\"j0\",\"type\":\"run\",\"args\":{\"say\":\"\"}}");
    stage_push_text(s, "{\"id\":\"j0\",\"type\":\"run\",\"n\":2,\"args\":{\"say\":"
                       "\"{\\\"id\\\":\\\"j0\\\",\\\"status\\\":\\\"dead\\\",\\\"reason\\\":\\\"first\\\"}\\n"
                       "{\\\"id\\\":\\\"j0\\\",\\\"status\\\":\\\"done\\\"}\\n\"}}");
    await(stage_stat(s, "run", "done") == 1 && stage_stat(s, "run", "dead") == 1);
    {
        char *dead = stage_dead(s);

        assert_non_null(strstr(dead, "first"));
        assert_null(strstr(dead, "\"n\":2"));
        free(dead);
    }
}

/* Full children first, and no more of them than the executors can fill. */
STAGE_TEST_WITH(children_on_demand, open_stage, stage_teardown)
{
    start_worker(s, "5", "2");
    push(s, 0, "{}");
    await(stage_stat(s, "run", "done") == 1);
    assert_int_equal(stage_lines(s, "pids"), 1);
    for (int i = 1; i <= 12; i++)
        push(s, i, "{\"sleep\":0.1}");
    await(stage_stat(s, "run", "done") == 13);
    assert_int_equal(stage_lines(s, "pids"), 3);
}

/* ---- Its end */

STAGE_TEST_WITH(a_job_that_kills_its_child, open_stage, stage_teardown)
{
    start_worker(s, "1", "1");
    push(s, 0, "{\"exit\":3,\"err\":\"Traceback\\nKeyError: to\\n\"}");
    push(s, 1, "{\"kill\":11,\"once\":\"crashed\"}");
    await(stage_stat(s, "run", "dead") == 1 && stage_stat(s, "run", "done") == 1);
    stage_died(s, 0, "its handler died 3 times: exit 3: Traceback KeyError: to");
    assert_int_equal(stage_stat(s, "run", "retried"), 0);
    assert_int_equal(stage_lines(s, "pids"), 5);
    assert_told(s, "died with 1 jobs: exit 3: Traceback");
    assert_told(s, "died with 1 jobs: killed by signal 11");
}

/* Twenty in one child: the nineteen that were in it by chance all end well. */
STAGE_TEST_WITH(the_innocent_live, open_stage, stage_teardown)
{
    for (int i = 0; i < 20; i++)
        push(s, i, i == 7 ? "{\"exit\":1}" : "{\"hold\":1}");
    start_worker(s, "20", "20");
    await(stage_stat(s, "run", "dead") == 1 && stage_stat(s, "run", "done") == 19);
    stage_died(s, 7, "its handler died 3 times: exit 1");
}

/* What it had not read is not counted as interrupted: it never met the child. */
STAGE_TEST_WITH(lines_not_taken_are_given_back, open_stage, stage_teardown)
{
    char args[20001];

    memset(args, '7', sizeof args - 1);
    memcpy(args, "{\"exit\":1,\"once\":\"died\",\"x\":\"", 29);
    memcpy(args + sizeof args - 3, "\"}", 3);
    for (int i = 0; i < 20; i++)
        push(s, i, args);
    start_worker(s, "20", "20");
    await(stage_stat(s, "run", "done") == 20);
    assert_int_equal(stage_stat(s, "run", "back"), 20);
    /* Python reads a few of these lines ahead. */
    assert_told(s, "died with ");
    assert_false(was_told(s, "died with 20 jobs"));
}

/* Jobs are not handed to what does not work: none is harmed, and the other types go on. */
STAGE_TEST_WITH(a_child_that_does_not_start, open_stage, stage_teardown)
{
    char *entry;

    write_text(s->server.folder, "broken.py", "import sys\nsys.exit('no module named sms')\n");
    stage_push(s, "sms", NULL, 0, 30);
    stage_weir(s, "worker", "--pipe", "sms=python3 broken.py", "--exec", "other=/bin/true", "-c", "10",
               "--in-flight", "10", "--unknown", "dead", NULL);
    for (int deaths = 1; deaths <= 3; deaths++)
        await(stage_stat(s, "sms", "back") >= 10 * deaths);
    stage_push(s, "other", NULL, 100, 20);
    await(stage_stat(s, "other", "done") == 20);
    assert_int_equal(stage_stat(s, "sms", "dead"), 0);
    assert_int_equal(stage_judge(s, 30).present, 30);
    assert_true(was_told(s, "died with 0 jobs: exit 1: no module named sms"));
    assert_false(was_told(s, "wait for a worker that has a handler"));
    write_text(s->server.folder, "broken.py", child_text);
    await(stage_stat(s, "sms", "done") == 30);
    entry = server_ask(&s->server, "ZCARD", stage_key(s, "dead"), NULL);
    assert_string_equal(entry, "0");
    free(entry);
}

/* While its only type rests, a worker does not look at its queue again and again. */
STAGE_TEST_WITH(nobody_peeks_for_a_type_that_rests, open_stage, stage_teardown)
{
    stage_push(s, "sms", NULL, 0, 1);
    stage_weir(s, "worker", "--pipe", "sms,tel=false", "-c", "2", NULL);
    for (int deaths = 1; deaths <= 5; deaths++) {
        await(stage_stat(s, "sms", "back") >= deaths);
        stage_push(s, "sms", NULL, deaths, 1); /* it stays in the queue as long as the rest lasts */
    }
    assert_in_range(stage_peeks(s), 0, 50);
}

#ifndef __SANITIZE_THREAD__ /* which makes a fork of vfork: the child's errno does not come back */
/* A program that is gone: as if it did not start. */
STAGE_TEST_WITH(a_program_that_goes_missing, open_stage, stage_teardown)
{
    char path[160];

    snprintf(path, sizeof path, "%s/handler", s->server.folder);
    write_text(s->server.folder, "handler", "#!/bin/sh\nexec python3 child.py\n");
    assert_int_equal(chmod(path, 0755), 0);
    stage_weir(s, "worker", "--pipe", "run=./handler", NULL);
    push(s, 0, "{\"answer\":{\"status\":\"done\"},\"exit\":0}");
    stage_await_workers(s, 1);
    assert_int_equal(unlink(path), 0);
    push(s, 1, "{}");
    assert_told(s, "run : cannot run ./handler: No such file or directory; its jobs are given back");
    write_text(s->server.folder, "handler", "#!/bin/sh\nexec python3 child.py\n");
    assert_int_equal(chmod(path, 0755), 0);
    await(stage_stat(s, "run", "done") == 1);
}
#endif

/* Types that were named together have the same children, and options of their own. */
STAGE_TEST_WITH(types_share_their_children, open_stage, stage_teardown)
{
    stage_weir(s, "worker", "--pipe", "run,sms,tel=python3 child.py", "-c", "1", "--timeout", "*=200ms",
               "--timeout", "sms,tel=1m", "--backoff", "*=1m..1m", "--backoff", "run,tel=10ms..10ms", NULL);
    stage_push(s, "sms", "{\"sleep\":0.4}", 0, 1);
    stage_push(s, "tel", "{}", 1, 1);
    await(stage_stat(s, "sms", "done") == 1 && stage_stat(s, "tel", "done") == 1);
    assert_int_equal(stage_lines(s, "pids"), 1);
    stage_run(s, 2, "{\"sleep\":1000}", 1, 0);
    await(stage_stat(s, "run", "dead") == 1);
    stage_push(s, "tel", "{\"exit\":1,\"once\":\"fault\"}", 3, 1);
    await(stage_stat(s, "tel", "done") == 2);
}

/* Both rest while their program is not there, and both go on. */
STAGE_TEST_WITH(types_rest_together, open_stage, stage_teardown)
{
    stage_weir(s, "worker", "--pipe", "run,sms=python3 child.py", "-c", "1", NULL);
    push(s, 0, "{\"exit\":1,\"once\":\"fault\"}");
    stage_push(s, "sms", "{}", 1, 1);
    await(stage_stat(s, "run", "done") == 1 && stage_stat(s, "sms", "done") == 1);
    assert_told(s, "run,sms : child ");
}

STAGE_TEST_WITH(a_child_that_closes_its_output, open_stage, stage_teardown)
{
    start_worker(s, "1", "1");
    push(s, 0, "{\"close\":1}");
    await(stage_stat(s, "run", "dead") == 1);
    stage_died(s, 0, "its handler died 3 times: killed by signal 15");
}

/* It ends after each job, as some do to be rid of what leaks: no death. */
STAGE_TEST_WITH(a_child_that_retires, open_stage, stage_teardown)
{
    write_text(s->server.folder, "once.sh",
               "read -r job\necho '{\"id\":\"j'$(echo \"$job\" | sed "
               "'s/.*\"id\":\"j\\([0-9]*\\).*/\\1/')'\",\"status\":\"done\"}'\n");
    stage_weir(s, "worker", "--pipe", "run=sh once.sh", "-c", "1", NULL);
    for (int i = 0; i < 10; i++)
        push(s, i, "{}");
    await(stage_stat(s, "run", "done") == 10);
    assert_false(was_told(s, "died"));
}

/* With all that it has started. */
STAGE_TEST_WITH(its_group_ends_with_it, open_stage, stage_teardown)
{
    pid_t worker = start_worker(s, "1", "1"), grandchild;

    push(s, 0, "{\"fork\":1,\"exit\":1,\"once\":\"crashed\"}");
    await(stage_stat(s, "run", "done") == 1);
    grandchild = await_pid(s->server.folder, "grandchild");
    assert_int_equal(stage_end(worker), 0);
    await(!is_running(grandchild));
}

STAGE_TEST_WITH(standard_error_goes_to_the_log, open_stage, stage_teardown)
{
    char args[8192];

    start_worker(s, "1", "1");
    push(s, 0, "{\"err\":\"one\\ntw\\u001bo\\nthree\"}");
    assert_told(s, "run : one\n");
    assert_told(s, "run : tw\\u001bo\n");
    memset(args, 'x', sizeof args);
    memcpy(args, "{\"err\":\"four", 12);
    memcpy(args + sizeof args - 5, "\\n\"}", 5);
    push(s, 1, args);
    assert_told(s, "run : threefourxxx");
    push(s, 2, "{\"err\":\"five\\n\"}");
    assert_told(s, "run : five\n");
}

/* ---- Time, and stopping */

/* TERM does not help against a child that ignores it; its other job runs again, and ends well. */
STAGE_TEST_WITH(a_job_over_its_time, open_stage, stage_teardown)
{
    pid_t child;

    write_text(s->server.folder, "deaf.py",
               "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
               "exec(open('child.py').read())\n");
    stage_weir(s, "worker", "--pipe", "run=python3 deaf.py", "-c", "2", "--in-flight", "2", "--kill-after",
               "300ms", NULL);
    stage_run(s, 0, "{\"sleep\":1000}", 1, 2);
    child = await_pid(s->server.folder, "sleeping");
    push(s, 1, "{}");
    await(stage_stat(s, "run", "dead") == 1 && stage_stat(s, "run", "done") == 1);
    stage_died(s, 0, "over its time of 2 s: killed by signal 9");
    assert_false(is_running(child));
    assert_int_equal(stage_lines(s, "pids"), 2);
}

/* TERM: the jobs in it end; then it reads the end of its input and ends by itself. */
STAGE_TEST_WITH(stopping_lets_it_end, open_stage, stage_teardown)
{
    pid_t worker = start_worker(s, "4", "2");

    for (int i = 0; i < 4; i++)
        push(s, i, "{\"sleep\":0.3}");
    await(stage_lines(s, "sleeping") == 2);
    assert_int_equal(stage_end(worker), 0);
    assert_int_equal(stage_stat(s, "run", "done"), 4);
    assert_int_equal(stage_lines(s, "ended"), 2);
    assert_false(was_told(s, "died"));
}

/* Over its time before the child has read it. */
STAGE_TEST_WITH(a_job_that_was_never_read, open_stage, stage_teardown)
{
    write_text(s->server.folder, "slow.py", "import time\ntime.sleep(1000)\n");
    stage_weir(s, "worker", "--pipe", "run=python3 slow.py", "-c", "2", "--in-flight", "2", NULL);
    stage_run(s, 0, "{}", 1, 0.3);
    await(stage_stat(s, "run", "dead") == 1);
    stage_died(s, 0, "over its time of 0.3 s: killed by signal 15");
}

/* The child ends by itself: the worker does not wait until it would end one that is deaf. */
STAGE_TEST_WITH(draining_ends_it_too, open_stage, stage_teardown)
{
    for (int i = 0; i < 10; i++)
        push(s, i, "{}");
    assert_int_equal(program_end(stage_weir(s, "worker", "--pipe", "run=python3 child.py", "--drain",
                                            "--kill-after", "1h", NULL)),
                     0);
    assert_int_equal(stage_stat(s, "run", "done"), 10);
    assert_int_equal(stage_lines(s, "ended"), stage_lines(s, "pids"));
}

/* The grace is over: the child is killed, its jobs are where they were. */
STAGE_TEST_WITH(stopping_does_not_wait_for_ever, open_stage, stage_teardown)
{
    int64_t start_us;
    pid_t worker, child;

    write_text(s->server.folder, "deaf.py",
               "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
               "exec(open('child.py').read())\n");
    worker = stage_weir(s, "worker", "--pipe", "run=python3 deaf.py", "-c", "2", "--in-flight", "2",
                        "--grace", "300ms", "--kill-after", "300ms", NULL);
    push(s, 0, "{\"sleep\":1000}");
    push(s, 1, "{}");
    child = await_pid(s->server.folder, "sleeping");
    start_us = clock_mono_us();
    assert_int_equal(stage_end(worker), 0);
    assert_in_range(clock_mono_us() - start_us, 300 * MS, 20 * SECOND); /* the usual grace: 25 s */
    assert_false(is_running(child));
    assert_int_equal(stage_judge(s, 2).present, 2);
    assert_int_equal(stage_stat(s, "run", "retried") + stage_stat(s, "run", "dead"), 0);
}

/* A service manager tells the whole group to stop: the child ends by that, and no job of its was interrupted. */
STAGE_TEST_WITH(term_ends_the_child_too, open_stage, stage_teardown)
{
    pid_t worker = start_worker(s, "1", "1"), child;

    push(s, 0, "{\"sleep\":1000}");
    child = await_pid(s->server.folder, "sleeping");
    kill(worker, SIGTERM);
    assert_told(s, "stopping");
    kill(child, SIGTERM);
    assert_int_equal(program_end(worker), 0);
    assert_int_equal(stage_stat(s, "run", "back"), 1);
    assert_false(was_told(s, "interrupted"));
}

STAGE_TEST_WITH(children_end_with_their_worker, open_stage, stage_teardown)
{
    pid_t worker = start_worker(s, "1", "1"), child;

    push(s, 0, "{\"sleep\":1000}");
    child = await_pid(s->server.folder, "sleeping");
    kill(worker, SIGKILL);
    assert_int_equal(program_end(worker), 1000 + SIGKILL);
    await(!is_running(child));
}

TESTS(NULL, NULL)
