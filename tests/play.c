#include "tests/play.h"

#include "tests/scene.h"
#include "tests/transcript.h"

#define WIDTH 130 /* of a line with what it comes to */

/* ---- Plays and their scenes */

static struct play {
    const char *path;
    char **lines;
    int count;
    bool is_changed;
} play;

struct scene {
    int first, end; /* lines */
    int row;        /* of `each` that is played */
};

static void write_play(void)
{
    FILE *file = play.is_changed ? fopen(play.path, "w") : NULL;

    for (int i = 0; file && i < play.count; i++)
        if (play.lines[i])
            fprintf(file, "%s\n", play.lines[i]);
    if (file)
        fclose(file);
}

static void play_scene(void **state);

static void miss_play(void **state)
{
    fail_msg("%s: not found from here", play.path);
}

void play_add(const char *name)
{
    FILE *file;
    char *line = NULL;
    size_t size = 0;
    struct scene *scene = NULL;

    play.path = strdup(textf("tests/plays/%s.txt", name));
    file = fopen(play.path, "r");
    if (!file) { /* as in an actor, which runs no tests */
        tests_add(0, (struct CMUnitTest){play.path, miss_play, NULL, NULL, NULL});
        return;
    }
    for (ssize_t len; (len = getline(&line, &size, file)) > 0; play.count++) {
        line[len - 1] = '\0';
        play.lines = realloc(play.lines, (size_t)(play.count + 1) * sizeof *play.lines);
        play.lines[play.count] = strdup(line);
        if (strncmp(line, "== ", 3) == 0) {
            scene = calloc(1, sizeof *scene);
            scene->first = play.count + 1;
            tests_add(1000000 + play.count,
                      (struct CMUnitTest){play.lines[play.count] + 3, play_scene, NULL, NULL, scene});
        }
        if (scene)
            scene->end = play.count + 1;
    }
    free(line);
    fclose(file);
    if (getenv("WEIR_PLAYS"))
        atexit(write_play);
}

/* ---- Playing */

/* What it says; "error: ..." */
static char *said_by(const char *line, bool *failed)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    int rc;

    assert_non_null(out);
    rc = play_step(line, out);
    *failed = rc != 0;
    fclose(out);
    return text;
}

static bool is_row(const char *line)
{
    return *line == ' ' && strncmp(line + strspn(line, " "), "->", 2) != 0;
}

/* A word of a row up to two blanks. */
static char *cut_field(char **rest)
{
    char *field = *rest + strspn(*rest, " "), *end = strstr(field, "  ");

    *rest = end ? end + 2 : field + strlen(field);
    if (end)
        *end = '\0';
    return field;
}

/* A line with the words of the row that is played in place of their names. */
static const char *with_row(const struct scene *scene, const char *line)
{
    char *names, *row;

    if (strncmp(play.lines[scene->first], "each ", 5) != 0)
        return line;
    names = textf("%s", play.lines[scene->first] + 5);
    row = textf("%s", play.lines[scene->first + 1 + scene->row]);
    while (*names) {
        const char *name = cut_field(&names), *value = cut_field(&row), *at;

        while ((at = strstr(line, name)))
            line = textf("%.*s%s%s", (int)(at - line), line, strcmp(value, "''") ? value : "",
                         at + strlen(name));
    }
    return line;
}

/* What is printed takes the place of what the line at `at` expects, there or in the next one. */
static void replace(int at, const char *step, const char *text)
{
    bool fits = strlen(step) + strlen(text) + 4 <= WIDTH;

    if (at + 1 < play.count && *play.lines[at + 1] == ' ' && !is_row(play.lines[at + 1]))
        play.lines[at + 1] = NULL;
    play.lines[at] = strdup(textf("%s%s%s%s", step, fits ? " ->" : "\n    ->", *text ? " " : "", text));
    for (size_t len = strlen(play.lines[at]); len > 0 && play.lines[at][len - 1] == ' '; len--)
        play.lines[at][len - 1] = '\0';
    play.is_changed = true;
}

static void check(const struct scene *scene, int at, const char *step, const char *expected)
{
    bool failed;
    char *text = said_by(with_row(scene, step), &failed);

    if (expected)
        expected = with_row(scene, expected + strspn(expected, " "));
    else if (*text && strncmp(step, "end ", 4) == 0)
        expected = "";
    if (expected ? !transcript_matches(expected, text, NULL) : failed) {
        if (!expected || !getenv("WEIR_PLAYS") || scene->row > 0)
            fail_msg("%s:%d: %s: %s%s%s", play.path, at + 1, step, text, expected ? ", not " : "",
                     expected ? expected : "");
        replace(at, step, text);
    }
    free(text);
}

/* The step of a line; returns how many lines it has. */
static int play_line(const struct scene *scene, int at)
{
    char *step = textf("%s", play.lines[at]), *arrow = strstr(step, " ->");
    const char *below = at + 1 < scene->end ? play.lines[at + 1] : "";

    if (arrow)
        *arrow = '\0';
    if (arrow || *below != ' ') {
        check(scene, at, step, arrow ? arrow + 3 : NULL);
        return 1;
    }
    check(scene, at, step, strstr(below, "->") + 2);
    return 2;
}

static void play_scene(void **state)
{
    struct scene *scene = *state;
    int first = scene->first, rows = 0;

    if (strncmp(play.lines[first], "each ", 5) == 0)
        for (first++; is_row(play.lines[first]); first++)
            rows++;
    for (scene->row = 0; scene->row == 0 || scene->row < rows; scene->row++) {
        play_begin();
        for (int at = first; at < scene->end;)
            at += *play.lines[at] && *play.lines[at] != '#' ? play_line(scene, at) : 1;
        play_end();
    }
}
