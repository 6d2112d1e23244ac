/* The text of the functions, which connections send. */
#include "core/clock.h"
#include "core/script/script.h"
#include "tests/scene.h"
#include "tests/stage.h"

static int open_stage(void **state)
{
    struct stage *s = calloc(1, sizeof *s);

    *state = s;
    stage_open(s, false);
    return 0;
}

static int close_stage(void **state)
{
    stage_close(*state);
    free(*state);
    return 0;
}

static void test_the_library_is_bare(void **state)
{
    (void)state;
    assert_null(strstr(script_library, "\n--"));
    assert_null(strstr(script_library, "\n "));
    assert_null(strstr(script_library, " -- "));
    assert_null(strstr(script_library, " \n"));
    assert_non_null(strstr(script_library, "'weir doctor --repair once more'")); /* a text is no comment */
}

/* A line of a file of the source, from 1. */
static void read_line(const char *file, int number, char *line, int size)
{
    FILE *in = fopen(file, "r");

    assert_non_null(in);
    while (number-- > 0)
        assert_non_null(fgets(line, size, in));
    fclose(in);
}

/* A fault is put into a line of the library: what people read names the line of the file. */
static void test_an_error_names_file_and_line(void **state)
{
    static const char sound[] = "local function ahead(ARGV)\n", faulty[] = "local function ahead() x()\n";
    struct stage *s = *state;
    char *text = strdup(script_library), *at = strstr(text, sound), *answer, function[64], line[200];
    const char *file;
    struct error e;
    int number;

    assert_non_null(at);
    memcpy(at, faulty, sizeof faulty - 1);
    memmove(at + sizeof faulty - 1, at + sizeof sound - 1, strlen(at + sizeof sound - 1) + 1);
    free(server_ask(&s->server, "FUNCTION", "LOAD", "REPLACE", text, NULL));
    snprintf(function, sizeof function, "weir_%s_ahead", script_digest);
    answer = server_ask(&s->server, "FCALL_RO", function, "1", "p:", "", NULL);
    file = script_place(answer, &number);
    if (!file)
        fail_msg("%s", answer);
    assert_string_equal(file, "queue/inspect/ahead.lua");
    read_line(file, number, line, sizeof line);
    assert_string_equal(line, sound);
    assert_int_equal(redis_fault_error(&e, answer + strlen("(error) ")), WEIR_EINTERNAL);
    snprintf(line, sizeof line, "unexpected error in queue/inspect/ahead.lua:%d: ERR ", number);
    assert_non_null(strstr(e.text, line));
    free(answer);
    free(text);
}

/* The first line and the last one of each file, and lines of none. */
static void test_places(void **state)
{
    char text[100];
    int line;

    (void)state;
    for (const struct script_place *p = script_places; p->file; p++) {
        snprintf(text, sizeof text, "ERR user_function:%d: script: weir_%s_x", p->before + 1, script_digest);
        assert_string_equal(script_place(text, &line), p->file);
        assert_int_equal(line, 1);
        if (!p[1].file)
            break;
        snprintf(text, sizeof text, "user_function:%d: weir_%s_x", p[1].before, script_digest);
        assert_string_equal(script_place(text, &line), p->file);
    }
    assert_null(script_place("ERR user_function:7: script: weir_0123456789ab_x", &line));
    snprintf(text, sizeof text, "ERR script: weir_%s_x", script_digest);
    assert_null(script_place(text, &line));
    snprintf(text, sizeof text, "user_function:1: weir_%s_x", script_digest);
    assert_null(script_place(text, &line)); /* #!lua */
}

#define ON_STAGE(name) cmocka_unit_test_setup_teardown(test_##name, open_stage, close_stage)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_library_is_bare),
        ON_STAGE(an_error_names_file_and_line),
        cmocka_unit_test(test_places),
    };
    int code = stage_actor_main(argc, argv);

    return code >= 0 ? code : cmocka_run_group_tests_name("connections", tests, NULL, NULL);
}
