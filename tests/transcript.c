/* A file is read into steps; a session's steps become one script for sh, which marks where each ends. */
#include "tests/transcript.h"

#include <errno.h>
#include <glob.h>
#include <regex.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/program.h"
#include "tests/server.h"
#include "tests/test.h"

#define STEPS_MOST 400
#define LINES_MOST 4000
#define LIMIT_S "300"     /* of a session */
#define ALL_NUMBERS "*"   /* of struct step, varies: each word with a digit */
#define MARK "\n\001%d\n" /* behind what a step prints: its exit code */

struct step {
    char *command;
    int line;        /* of its "$ " */
    int first, last; /* lines of what it prints: first to below last */
    bool compared;
    const char *varies;
    char *printed; /* NULL: the session ended before it */
};

struct transcript {
    const char *path;
    char *lines[LINES_MOST];
    int line_count;
    struct step steps[STEPS_MOST];
    int step_count;
    int sessions[STEPS_MOST + 1]; /* the first step of each */
    int session_count;
};

/* ---- What is expected */

static const struct {
    const char *mark, *pattern;
} wildcards[] = {
    {"<n>", "[0-9][0-9,.]*"},
    {"<id>", "[A-Za-z0-9_.:-]+"},
    {"<time>", "([0-9]{4}-[0-9]{2}-[0-9]{2}[T ])?[0-9]{2}:[0-9]{2}[0-9:.]*( UTC|Z|[+-][0-9:]+)?"},
    {"<span>", "[0-9.]+(us|ms|s|m|h|d|w)( [0-9]+(s|m|h|d))?"},
    {"<any>", ".*"},
    {"...", ".*"}, /* the last: in documents alone, as weir prints it too */
};
static bool in_document;

/* Does text begin with one of those? Returns its length. */
static size_t varying(const char *text, const char *varies)
{
    for (size_t len; varies && *varies; varies += len + strspn(varies + len, ", ")) {
        const char *end = strstr(varies, ", ");

        len = end ? (size_t)(end - varies) : strlen(varies);
        if (len > 0 && strncmp(text, varies, len) == 0)
            return len;
    }
    return 0;
}

/* Words with a digit, one blank between them: how long they are; 0: none begins here. */
static size_t numbers(const char *line, const char *at)
{
    size_t len = 0;

    if (at > line && at[-1] != ' ')
        return 0;
    for (size_t word; (word = strcspn(at + len, " ")) > 0; len += word + 1)
        if (strcspn(at + len, "0123456789") >= word)
            break;
        else if (!at[len + word] || at[len + word + 1] == ' ')
            return len + word;
    return len > 0 ? len - 1 : 0;
}

/* What stands at a place of a line that is expected, as a regular expression. Returns how much was read. */
static size_t put_pattern(FILE *to, const char *line, const char *at, const char *varies)
{
    bool all = varies && strcmp(varies, ALL_NUMBERS) == 0;
    size_t len = all ? numbers(line, at) : varying(at, varies);

    for (size_t i = 0; i < COUNT(wildcards) - !in_document; i++)
        if (strncmp(at, wildcards[i].mark, strlen(wildcards[i].mark)) == 0) {
            fputs(wildcards[i].pattern, to);
            return strlen(wildcards[i].mark);
        }
    if (len > 0) {
        fputs(all ? "[^ ]+( [^ ]*[0-9][^ ]*)*( at the earliest( \\([^)]*\\))?[;,]?)?" : ".*", to);
        return len;
    }
    len = strspn(at, " ");
    if (len > 1) {
        fputs(at == line ? " *" : " +", to);
        return len;
    }
    fprintf(to, strchr("\\^$.|?*+()[]{}", *at) ? "\\%c" : "%c", *at);
    return 1;
}

static bool line_matches(const char *expected, const char *line, const char *varies)
{
    char *pattern;
    size_t size;
    FILE *to = open_memstream(&pattern, &size);
    regex_t compiled;
    bool same;

    assert_non_null(to);
    fputc('^', to);
    for (const char *at = expected; *at;)
        at += put_pattern(to, expected, at, varies);
    fputs(" *$", to);
    fclose(to);
    assert_int_equal(regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB), 0);
    same = regexec(&compiled, line, 0, NULL, 0) == 0;
    regfree(&compiled);
    free(pattern);
    return same;
}

/* Splits it at newlines; empty lines at the end do not count. */
static int split(char *text, char **lines)
{
    int count = 0, last = 0;

    for (char *line; (line = strsep(&text, "\n"));) {
        assert_true(count < LINES_MOST);
        lines[count++] = line;
        if (line[strspn(line, " ")])
            last = count;
    }
    return last;
}

static bool lines_match(char **expected, int wanted, char **lines, int count, const char *varies)
{
    if (wanted == 0)
        return count == 0;
    if (strcmp(*expected, "<lines>") != 0 && !(in_document && strcmp(*expected, "...") == 0))
        return count > 0 && line_matches(*expected, *lines, varies) &&
               lines_match(expected + 1, wanted - 1, lines + 1, count - 1, varies);
    for (int skipped = 0; skipped <= count; skipped++)
        if (lines_match(expected + 1, wanted - 1, lines + skipped, count - skipped, varies))
            return true;
    return false;
}

bool transcript_matches(const char *expected, const char *text, const char *varies)
{
    static char *wanted[LINES_MOST], *lines[LINES_MOST];
    char *copies[2] = {strdup(expected), strdup(text)};
    int wanted_count = split(copies[0], wanted), count = split(copies[1], lines);
    bool same = lines_match(wanted, wanted_count, lines, count, varies);

    free(copies[0]);
    free(copies[1]);
    return same;
}

/* ---- Reading */

static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;

    if (!file)
        fail_msg("%s: %s", path, strerror(errno));
    if (getdelim(&text, &size, '\0', file) < 0)
        text = strdup("");
    fclose(file);
    return text;
}

static struct step *add_step(struct transcript *t, const char *command, int line)
{
    struct step *s = &t->steps[t->step_count++];

    assert_true(t->step_count < STEPS_MOST);
    *s = (struct step){.command = strdup(command), .line = line, .first = line + 1, .last = line + 1};
    return s;
}

static void add_command_line(struct step *s, const char *line)
{
    char *longer;

    assert_true(asprintf(&longer, "%s\n%s", s->command, line) > 0);
    free(s->command);
    s->command = longer;
}

/* A line of a session: a command, more of it, or what it prints. */
static void read_line(struct transcript *t, int line, bool begins, const char *varies)
{
    struct step *s = t->step_count > 0 && !begins ? &t->steps[t->step_count - 1] : NULL;
    const char *text = t->lines[line];

    if (strncmp(text, "$ ", 2) == 0) {
        s = add_step(t, text + 2, line);
        s->compared = true;
        s->varies = varies;
    } else if (s && s->first == line && strncmp(text, "> ", 2) == 0) {
        add_command_line(s, text + 2);
        s->first = s->last = line + 1;
    } else if (s) {
        s->last = line + 1;
    } else if (*text) {
        fail_msg("%s:%d: no command prints this: %s", t->path, line + 1, text);
    }
}

static void begin_session(struct transcript *t)
{
    if (t->session_count == 0 || t->sessions[t->session_count - 1] < t->step_count)
        t->sessions[t->session_count++] = t->step_count;
}

static void read_text_file(struct transcript *t)
{
    begin_session(t);
    for (int i = 0; i < t->line_count; i++)
        if (strncmp(t->lines[i], "# ", 2) != 0)
            read_line(t, i, t->step_count == 0, NULL);
}

/* "<!-- name: what -->": what, the caller's to keep; NULL: the line is none. */
static char *comment(const char *line, const char *name)
{
    char *what, *end;

    if (strncmp(line, "<!-- ", 5) != 0 || strncmp(line + 5, name, strlen(name)) != 0)
        return NULL;
    what = strdup(line + 5 + strlen(name));
    end = strstr(what, " -->");
    if (!end)
        fail_msg("no --> ends: %s", line);
    *end = '\0';
    return what;
}

static void read_between(struct transcript *t, int line, const char **varies)
{
    char *what;

    if (strcmp(t->lines[line], "<!-- fresh -->") == 0) {
        begin_session(t);
    } else if (strcmp(t->lines[line], "<!-- varies -->") == 0) {
        *varies = ALL_NUMBERS;
    } else if ((what = comment(t->lines[line], "varies: "))) {
        *varies = what;
    } else if ((what = comment(t->lines[line], "$ "))) {
        add_step(t, what, line);
        free(what);
    }
}

/* A block of commands alone is one step, which ends at the first that fails. */
static void read_commands(struct transcript *t, int line, int end)
{
    struct step *s = add_step(t, "set -e", line);

    for (; line < end; line++)
        add_command_line(s, t->lines[line]);
    add_command_line(s, "set +e");
}

/* A block goes from its first line to before end. */
static void read_block(struct transcript *t, const char *info, int line, int end, const char *varies)
{
    int first = line;

    if (strcmp(info, "sh") == 0)
        read_commands(t, line, end);
    else if (strcmp(info, "console") == 0)
        for (; line < end; line++)
            read_line(t, line, line == first, varies);
    else if (!strstr(info, "norun") && strcmp(info, "protocol") != 0 && strncmp(t->lines[line], "$ ", 2) == 0)
        fail_msg("%s:%d: not marked as console", t->path, line);
}

static void read_markdown(struct transcript *t)
{
    const char *varies = NULL;

    begin_session(t);
    for (int i = 0, end; i < t->line_count; i = end + 1) {
        end = i;
        if (strncmp(t->lines[i], "```", 3) == 0) {
            for (end++; end < t->line_count && strcmp(t->lines[end], "```") != 0;)
                end++;
            read_block(t, t->lines[i] + 3, i + 1, end, varies);
            varies = NULL;
        } else {
            read_between(t, i, &varies);
        }
    }
}

/* ---- Running */

static void write_script(const struct transcript *t, int from, int to, const char *folder)
{
    char *text;
    size_t size;
    FILE *script = open_memstream(&text, &size);

    fputs("exec 2>&1\nexport HOME=$PWD\n. tests/transcript.sh\n", script);
    for (int i = from; i < to; i++)
        fprintf(script, "%s\nprintf '\\n\\001%%d\\n' $?\n", t->steps[i].command);
    fclose(script);
    write_text(folder, "script", text);
    free(text);
}

/* build, examples, tests and a folder in which the session begins. */
static void prepare_folder(const char *folder)
{
    const char *here = textf("%s/session", folder);
    char source[1000];

    assert_non_null(getcwd(source, sizeof source));
    assert_int_equal(mkdir(here, 0700), 0);
    assert_int_equal(symlink(built(""), textf("%s/build", here)), 0);
    assert_int_equal(symlink(textf("%s/examples", source), textf("%s/examples", here)), 0);
    assert_int_equal(symlink(textf("%s/tests", source), textf("%s/tests", here)), 0);
}

static void set_environment(const char *url)
{
    static const char *const unset[] = {"WEIR_NAMESPACE", "COLUMNS", "NO_COLOR", "WEIR_TEST"};
    static char path[4096];

    if (!*path)
        snprintf(path, sizeof path, "%s:%s", built(""), getenv("PATH"));
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++)
        unsetenv(unset[i]);
    setenv("PATH", path, 1);
    setenv("REDIS_URL", url, 1);
    setenv("TZ", "UTC", 1);
}

/* What a step printed ends with its mark: "\n\001CODE\n". Returns what follows. */
static char *take_printed(struct step *s, char *text)
{
    char *mark = strstr(text, "\n\001"), *end;
    long code;

    if (!mark) {
        assert_true(asprintf(&s->printed, "%s[exit: the session ended, or took too long]\n", text) > 0);
        return NULL;
    }
    code = strtol(mark + 2, &end, 10);
    *mark = '\0';
    if (code == 0)
        s->printed = strdup(text);
    else
        assert_true(
            asprintf(&s->printed, "%s%s[exit %ld]", text, *text && mark[-1] != '\n' ? "\n" : "", code) > 0);
    return end + 1;
}

static void run_session(struct transcript *t, int from, int to)
{
    static const char *const words[] = {"/usr/bin/timeout",          "-s", "KILL", LIMIT_S, "/bin/bash", "-c",
                                        "cd session && . ../script", NULL};
    struct server server;
    char path[300], *text, *rest;
    pid_t shell;

    if (from == to)
        return;
    server_start(&server, false);
    server_hold_clock(&server);
    prepare_folder(server.folder);
    set_environment(server.url);
    write_script(t, from, to, server.folder);
    shell = program_start(server.folder, "printed", words);
    waitpid(shell, NULL, 0);
    kill(-shell, SIGKILL); /* what it left in the background */
    snprintf(path, sizeof path, "%s/printed.out", server.folder);
    text = rest = read_whole(path);
    for (int i = from; i < to && rest; i++)
        rest = take_printed(&t->steps[i], rest);
    free(text);
    server_stop(&server);
}

/* ---- Comparing */

static char *expected_of(const struct transcript *t, const struct step *s)
{
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    for (int i = s->first; i < s->last; i++)
        if (strncmp(t->lines[i], "# ", 2) != 0)
            fprintf(to, "%s\n", t->lines[i]);
    fclose(to);
    return text;
}

static bool check_step(const struct transcript *t, const struct step *s)
{
    char *expected = expected_of(t, s);
    bool same = s->printed && (s->compared ? transcript_matches(expected, s->printed, s->varies)
                                           : !strstr(s->printed, "[exit "));

    if (!same)
        print_error("%s:%d: $ %s\n--- expected\n%s--- printed\n%s\n---\n", t->path, s->line + 1, s->command,
                    expected, s->printed ? s->printed : "(the session had ended, or took too long)");
    free(expected);
    return same;
}

/* Blank lines and comments behind what was printed stay. */
static int lines_replaced(const struct transcript *t, const struct step *s)
{
    int last = s->last;

    while (last > s->first && (!*t->lines[last - 1] || strncmp(t->lines[last - 1], "# ", 2) == 0))
        last--;
    return last;
}

/* The file again, with what the steps of wrong printed. */
static void write_file(const struct transcript *t, const bool *wrong)
{
    FILE *file = fopen(t->path, "w");
    int line = 0;

    assert_non_null(file);
    for (int i = 0; i < t->step_count; i++) {
        const struct step *s = &t->steps[i];

        if (!wrong[i] || !s->compared || !s->printed)
            continue;
        for (; line < s->first; line++)
            fprintf(file, "%s\n", t->lines[line]);
        fputs(s->printed, file);
        if (*s->printed && s->printed[strlen(s->printed) - 1] != '\n')
            fputc('\n', file);
        line = lines_replaced(t, s);
    }
    for (; line < t->line_count; line++)
        fprintf(file, "%s\n", t->lines[line]);
    fclose(file);
}

/* How many commands printed something else; each is shown. */
static int check_file(const char *path, bool write)
{
    static struct transcript t;
    static bool wrong[STEPS_MOST];
    char *text = read_whole(path);
    int count = 0;

    t = (struct transcript){.path = path};
    t.line_count = split(text, t.lines);
    in_document = strcmp(path + strlen(path) - 3, ".md") == 0;
    if (in_document)
        read_markdown(&t);
    else
        read_text_file(&t);
    t.sessions[t.session_count] = t.step_count;
    for (int i = 0; i < t.session_count; i++)
        run_session(&t, t.sessions[i], t.sessions[i + 1]);
    for (int i = 0; i < t.step_count; i++)
        count += wrong[i] = !check_step(&t, &t.steps[i]);
    if (write && count > 0)
        write_file(&t, wrong);
    for (int i = 0; i < t.step_count; i++) {
        free(t.steps[i].command);
        free(t.steps[i].printed);
    }
    free(text);
    return count;
}

static void test_a_file(void **state)
{
    const char *write = getenv("WEIR_TRANSCRIPTS");
    int wrong = check_file(*state, write && strcmp(write, "write") == 0);

    if (wrong > 0)
        fail_msg("%s: %d printed something else", (const char *)*state, wrong);
}

int transcripts_run(const char *const *patterns)
{
    glob_t files = {0};
    int failed;

    for (size_t i = 0; patterns[i]; i++)
        if (glob(patterns[i], i ? GLOB_APPEND : 0, NULL, &files) != 0)
            return 1;
    for (size_t i = 0; i < files.gl_pathc; i++)
        tests_add(__LINE__, (struct CMUnitTest){.name = files.gl_pathv[i],
                                                .test_func = test_a_file,
                                                .initial_state = files.gl_pathv[i]});
    failed = tests_run(NULL, NULL);
    globfree(&files);
    return failed;
}
