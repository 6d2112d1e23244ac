/* What weir prints, as transcripts say (tests/transcript.h): tests/transcripts/, README.md and doc/. One test
 * a file: WEIR_TEST='*queues*' runs some. */
#include <glob.h>

#include "tests/test.h"
#include "tests/transcript.h"

#define NOT_RUN_MOST 13

TEST(test_what_varies_matches)
{
    static const struct {
        const char *expected, *text, *varies;
        bool same;
    } cases[] = {
        {"a\nb\n", "a\nb\n\n", NULL, true},
        {"a\nb", "a\nc", NULL, false},
        {"a", "a\nb", NULL, false},
        {"a\nb", "a", NULL, false},
        {"", "", NULL, true},
        {"a.c [x] (y)*", "a.c [x] (y)*", NULL, true},
        {"a.c", "abc", NULL, false},
        {"<n> jobs", "12,345.5 jobs", NULL, true},
        {"<n> jobs", "no jobs", NULL, false},
        {"id <id>.", "id a-1_b:2.", NULL, true},
        {"id <id>", "id a b", NULL, false},
        {"at <time>", "at 09:00:00", NULL, true},
        {"at <time>", "at 2026-11-21 09:00", NULL, true},
        {"at <time>", "at 2026-11-21T09:00:00+01:00", NULL, true},
        {"at <time>", "at noon", NULL, false},
        {"in <span> (<time>)", "in 8m 2s (09:00:00)", NULL, true},
        {"in <span>", "in 250ms", NULL, true},
        {"in <span>", "in a while", NULL, false},
        {"weir: <any>; try", "weir: x: y; try", NULL, true},
        {"a ... b", "a c b", NULL, false}, /* in documents alone */
        {"a\n<lines>\nz", "a\nb\nc\nz", NULL, true},
        {"a\n<lines>\nz", "a\nz", NULL, true},
        {"a\n<lines>\nz", "a\nb", NULL, false},
        {"type  waiting\nx     1", "type   waiting\nx  1", NULL, true},
        {"two words", "two  words", NULL, false},
        {"took 1.5s, at 09:00", "took 9ms, at 10:30", "1.5s, 09:00", true},
        {"took 1.5s, at 09:00", "took 9ms, at 10:30", "1.5s", false},
        {"took 1m 5s, at 09:00", "took 9ms, at 10:30", "*", true},
        {"job a7 took 2s", "job b took 1m 5s", "*", true},
        {"took 1.5s, at 09:00", "took 9ms, on 10:30", "*", false},
        {"ends 09:00, in 2s; then", "ends 10:00, in 3s at the earliest (keys); then", "*", true},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        if (transcript_matches(cases[i].expected, cases[i].text, cases[i].varies) != cases[i].same)
            fail_msg("'%s' and '%s': not %s", cases[i].expected, cases[i].text,
                     cases[i].same ? "the same" : "different");
}

/* Blocks that say so, such as those with apt and systemctl. */
TEST(test_few_commands_are_not_run)
{
    char line[1000];
    glob_t files;
    int count = 0;

    assert_int_equal(glob("README.md", 0, NULL, &files), 0);
    assert_int_equal(glob("doc/*.md", GLOB_APPEND, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        FILE *file = fopen(files.gl_pathv[i], "r");

        assert_non_null(file);
        while (fgets(line, sizeof line, file))
            count += strncmp(line, "```", 3) == 0 && strstr(line, " norun") != NULL;
        fclose(file);
    }
    globfree(&files);
    assert_in_range(count, 1, NOT_RUN_MOST);
}

int main(void)
{
    return transcripts_run((const char *const[]){"tests/transcripts/*.txt", "README.md", "doc/*.md", NULL});
}
