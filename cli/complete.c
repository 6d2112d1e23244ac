#include "cli/complete.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "view/batches.h"
#include "view/limits.h"
#include "view/queues.h"
#include "view/schedules.h"
#include "view/status.h"
#include "view/workers.h"

#define WAITS_MS 150 /* for Redis: a shell that hangs is worse than one that knows no names */

/* The line that is completed. */
struct asked {
    const struct command *command;
    const struct help_flags *flags;
    char **words;
    int count;
    const char *word;   /* the last, or what of it is to be completed */
    const char *before; /* what stands before that in the last */
    int before_len;
};

static void offer(const struct asked *a, const char *word, int len, const char *behind, const char *what)
{
    if (strncmp(word, a->word, strlen(a->word)) == 0 && (int)strlen(a->word) <= len)
        output("%.*s%.*s%s\t%s\n", a->before_len, a->before, len, word, behind, what);
}

/* ---- Names from Redis */

static int limits_of(struct weir *w, json_t **doc)
{
    int64_t now_us;

    return view_rates(w, doc, &now_us);
}

static int schedules_of(struct weir *w, json_t **doc)
{
    int64_t now_us;

    return view_schedules(w, doc, &now_us);
}

static int types_of(struct weir *w, json_t **doc)
{
    json_t *status;
    int failed = view_status(w, &status);

    if (failed == 0) {
        *doc = json_incref(json_object_get(status, "types"));
        json_decref(status);
    }
    return failed;
}

static void give_up(int signal)
{
    (void)signal;
    _exit(0);
}

static const char *value_of(const struct asked *a, const char *flag)
{
    size_t len = strlen(flag);

    for (int i = 1; i < a->count - 1; i++) {
        if (strncmp(a->words[i], flag, len) == 0 && a->words[i][len] == '=')
            return a->words[i] + len + 1;
        if (strcmp(a->words[i], flag) == 0 && i + 1 < a->count - 1)
            return a->words[i + 1];
    }
    return NULL;
}

static void offer_names(const struct asked *a, int (*list)(struct weir *w, json_t **doc), const char *behind,
                        const char *what)
{
    const struct itimerval limit = {.it_value = {.tv_usec = WAITS_MS * 1000}};
    static const char *const flags[] = {"--redis", "--namespace", "--config", "--password-file"};
    struct cli cli = {.command = a->command};
    char *argv[2 * sizeof flags / sizeof *flags + 2] = {(char *)a->command->name};
    int argc = 1, operands;
    struct weir *w = NULL;
    const char *name;
    json_t *doc = NULL;
    size_t i;

    for (i = 0; i < sizeof flags / sizeof *flags; i++)
        if (value_of(a, flags[i])) {
            argv[argc++] = (char *)flags[i];
            argv[argc++] = (char *)value_of(a, flags[i]);
        }
    signal(SIGALRM, give_up);
    setitimer(ITIMER_REAL, &limit, NULL);
    if (cli_parse(&cli, NULL, argc, argv, &operands) == 0)
        w = cli_client(&cli);
    if (!w || list(w, &doc) < 0)
        doc = NULL;
    for (i = 0; i < json_array_size(doc); i++)
        if ((name = json_string_value(json_object_get(json_array_get(doc, i), "name"))))
            offer(a, name, (int)strlen(name), behind, what);
    for (void *row = json_object_iter(doc); row; row = json_object_iter_next(doc, row))
        offer(a, json_object_iter_key(row), (int)strlen(json_object_iter_key(row)), behind, what);
    json_decref(doc);
    if (w)
        weir_free(w);
    config_free(&cli.config);
}

/* ---- Values */

/* The values whose kind is told by what stands for them in the help. */
static const struct kind {
    const char *command; /* NULL: of any */
    const char *value;
    const char *words; /* in place of names from Redis */
    int (*list)(struct weir *w, json_t **doc);
    const char *behind, *what;
} kinds[] = {
    {NULL, "LEVEL", "error warn info debug", NULL, "", ""},
    {NULL, "FORMAT", "logfmt json", NULL, "", ""},
    {NULL, "POLICY", "once skip all", NULL, "", ""},
    {NULL, "hold|dead", "hold dead", NULL, "", ""},
    {"take", "WORD", "allow deny", NULL, "", ""},
    {"serve", "WORD", "allow deny error", NULL, "", ""},
    {"acl", "ROLE", "producer worker taker viewer operator", NULL, "", "role"},
    {"worker", "NAME|HOST:PID|all", NULL, view_workers, "", "worker"},
    {"queue", "NAME", NULL, view_queues, "", "queue"},
    {NULL, "QUEUE", NULL, view_queues, "", "queue"},
    {NULL, "Q", NULL, view_queues, "", "queue"},
    {NULL, "Q1,Q2", NULL, view_queues, "", "queue"},
    {"batch", "NAME", NULL, view_batches, "", "batch"},
    {"enqueue", "NAME", NULL, view_batches, "", "batch"},
    {NULL, "BATCH", NULL, view_batches, "", "batch"},
    {"schedule", "NAME", NULL, schedules_of, "", "schedule"},
    {"rate", "NAME", NULL, limits_of, "", "limit"},
    {"take", "NAME", NULL, limits_of, "", "limit"},
    {NULL, "TYPE", NULL, types_of, "", "type"},
    {NULL, "TYPE=COMMAND", NULL, types_of, "=", "type"},
    {NULL, "TYPE=URL", NULL, types_of, "=", "type"},
    {NULL, "TYPE=DUR", NULL, types_of, "=", "type"},
    {NULL, "TYPE=FIRST..MOST", NULL, types_of, "=", "type"},
};

static void offer_words(const struct asked *a, const char *words, const char *what)
{
    for (size_t len; *words; words += len + (words[len] == ' ')) {
        len = strcspn(words, " ");
        offer(a, words, (int)len, "", what);
    }
}

/* Completes a value that the help calls so: NAME, "[NAME..." or "NAME[/KEY]" too. */
static void offer_values(struct asked *a, const char *value, size_t len)
{
    const char *comma = strrchr(a->word, ',');

    while (len > 0 && (*value == '[' || *value == ']'))
        value++, len--;
    len = len > 3 && strncmp(value + len - 3, "...", 3) == 0 ? len - 3 : len;
    len = memchr(value, '[', len) ? (size_t)((char *)memchr(value, '[', len) - value) : len;
    if (comma && memchr(value, ',', len)) {
        a->before_len += (int)(comma + 1 - a->word);
        a->word = comma + 1;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct kind *k = &kinds[i];

        if (strlen(k->value) != len || strncmp(k->value, value, len) != 0 ||
            (k->command && strcmp(k->command, a->command->name) != 0))
            continue;
        if (k->words)
            offer_words(a, k->words, k->what);
        else
            offer_names(a, k->list, k->behind, k->what);
        return;
    }
}

static void offer_flag_values(struct asked *a, const struct flag *f)
{
    if (strcmp(f->name, "color") == 0)
        offer_words(a, "auto always never", "");
    else if (strcmp(f->name, "namespace") != 0)
        offer_values(a, f->value, strlen(f->value));
}

/* ---- Words */

static const struct flag *find_flag(const struct asked *a, const char *word, size_t len)
{
    for (int i = 0; i < a->flags->count; i++) {
        const struct flag *f = a->flags->at[i];

        if ((len == 2 && word[0] == '-' && f->letter && f->letter == word[1]) ||
            (len > 2 && strlen(f->name) == len - 2 && strncmp(word, "--", 2) == 0 &&
             strncmp(f->name, word + 2, len - 2) == 0))
            return f;
    }
    return NULL;
}

/* The flag whose value the word behind it is. */
static const struct flag *takes_next(const struct asked *a, const char *word)
{
    const struct flag *f = find_flag(a, word, strlen(word));

    return f && f->kind != FLAG_BOOL && f->kind != FLAG_OPTIONAL_TEXT ? f : NULL;
}

static void offer_flags(const struct asked *a, const char *action)
{
    char word[64];

    for (int i = 0; i < a->flags->count; i++) {
        const struct flag *f = a->flags->at[i];

        if (i < a->flags->own && action && !actions_have(a->command->actions, action, f->name))
            continue;
        snprintf(word, sizeof word, "--%s", f->name);
        offer(a, word, (int)strlen(word), "", f->help);
    }
}

/* Finds the word of a form at that index; one that ends with "..." stands for all behind it. NULL: the form has fewer. */
static const char *word_of_form(const char *form, int index)
{
    for (; *form; index--) {
        size_t len = strcspn(form, " ");

        if (index == 0 || (len > 3 && strncmp(form + len - 3, "...", 3) == 0))
            return form;
        form += len + (form[len] == ' ');
    }
    return NULL;
}

/* Completes the operand behind that many others, by the forms of the help; action is the first operand where the command has actions. */
static void offer_operands(struct asked *a, int index, const char *action)
{
    const char *text = NULL;
    char form[WHAT_SIZE];

    while (help_next_form(a->command->name, &text, form)) {
        const char *word = word_of_form(form, index);
        size_t len = word ? strcspn(word, " ") : 0, first_len = strcspn(form, " ");
        bool is_action = islower((unsigned char)*form);

        if (!word || (index > 0 && is_action &&
                      !(action && strlen(action) == first_len && strncmp(action, form, first_len) == 0)))
            continue;
        if (islower((unsigned char)*word) && index == 0) {
            offer(a, word, (int)len, "", form);
        } else if (*word != '-') {
            offer_values(a, word, len);
            return;
        }
    }
}

void complete_command(const struct command *const *commands, size_t count, const char *word)
{
    const struct asked a = {.word = word, .before = ""};
    char what[WHAT_SIZE];

    for (size_t i = 0; i < count; i++) {
        help_summary(commands[i]->name, what);
        offer(&a, commands[i]->name, (int)strlen(commands[i]->name), "", what);
    }
}

void complete_word(const struct command *c, const struct help_flags *flags, char **words, int count)
{
    struct asked a = {c, flags, words, count, words[count - 1], words[count - 1], 0};
    const char *action = NULL;
    const struct flag *f = NULL;
    int operands = 0;

    for (int i = 1; i < count - 1; i++) {
        f = takes_next(&a, words[i]);
        if (f && i + 1 < count - 1)
            i++, f = NULL;
        else if (words[i][0] != '-' && operands++ == 0 && c->actions)
            action = words[i];
    }
    if (f) {
        offer_flag_values(&a, f);
    } else if (strncmp(a.word, "--", 2) == 0 && strchr(a.word, '=')) {
        f = find_flag(&a, a.word, strcspn(a.word, "="));
        a.before_len = (int)strcspn(a.word, "=") + 1;
        a.word += a.before_len;
        if (f && f->value)
            offer_flag_values(&a, f);
    } else if (*a.word == '-') {
        offer_flags(&a, action);
    } else {
        offer_operands(&a, operands, action);
    }
}
