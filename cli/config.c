#include "cli/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/file.h"
#include "core/likely.h"
#include "throttle/limit.h"

#define FILE_MOST (1024 * 1024) /* bytes; a larger one was not meant */
#define TITLE_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-,*"
#define BLANKS " \t\r"
#define BYTE_ORDER_MARK "\xef\xbb\xbf" /* some editors begin UTF-8 with it */

#ifndef SYSCONFDIR
#define SYSCONFDIR "/etc"
#endif

static const struct section {
    const char *name, *title; /* NULL: it has none */
    bool of_command;          /* it has the flags of the command of that name */
} sections[] = {
    {"worker", NULL, true},      {"handler", "TYPE", false}, {"serve", NULL, true},
    {"limit", "NAME", false},    {"type", "TYPE", false},    {"queue", "NAME", false},
    {"schedule", "NAME", false},
};
#define SECTION_COUNT (sizeof sections / sizeof *sections)

bool config_is_of_command(const char *name)
{
    for (size_t i = 0; i < SECTION_COUNT; i++)
        if (strcmp(sections[i].name, name) == 0)
            return sections[i].of_command;
    return false;
}

/* Lists them: "[worker], [handler TYPE], [serve] ..." */
static void list_sections(char *out, size_t size)
{
    size_t len = 0;

    for (size_t i = 0; i < SECTION_COUNT && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, "%s[%s%s%s]", i ? ", " : "", sections[i].name,
                                sections[i].title ? " " : "", sections[i].title ? sections[i].title : "");
}

const char *config_place(const struct setting *s, char out[CONFIG_PLACE_SIZE])
{
    if (s->line)
        snprintf(out, CONFIG_PLACE_SIZE, "%.400s:%d", s->file, s->line);
    else
        snprintf(out, CONFIG_PLACE_SIZE, "%.400s", s->file);
    return out;
}

/* ---- What holds */

static bool is_same_section(const struct setting *a, const struct setting *b)
{
    return strcmp(a->section, b->section) == 0 && strcmp(a->title, b->title) == 0;
}

/* True when b is said in place of a: of another file, or no file, and the same name; a section with a title goes as a whole. */
static bool replaces(const struct setting *b, const struct setting *a)
{
    return a->file != b->file && is_same_section(a, b) && (*b->title || strcmp(a->name, b->name) == 0);
}

int config_say(struct config *c, const struct setting *s, struct error *e)
{
    struct setting *at = realloc(c->at, (c->count + 1) * sizeof *at);
    size_t kept = 0, i = 0;

    if (!at)
        return error_no_memory(e, "config");
    c->at = at;
    while (i < c->count && at[i].file != s->file) { /* those of its own file are the last ones */
        if (!replaces(s, &at[i]))
            at[kept++] = at[i];
        i++;
    }
    memmove(at + kept, at + i, (c->count - i) * sizeof *at);
    c->count -= i - kept;
    at[c->count++] = *s;
    return 0;
}

const struct setting *config_find(const struct config *c, const char *section, const char *name)
{
    for (size_t i = c->count; i > 0; i--)
        if (strcmp(c->at[i - 1].section, section) == 0 && strcmp(c->at[i - 1].name, name) == 0)
            return &c->at[i - 1];
    return NULL;
}

const struct setting *config_next_title(const struct config *c, const char *section, size_t *at)
{
    while (*at < c->count) {
        const struct setting *s = &c->at[(*at)++], *first = c->at;

        while (!is_same_section(first, s))
            first++;
        if (first == s && strcmp(s->section, section) == 0)
            return s;
    }
    return NULL;
}

struct config_text {
    struct config_text *next;
    char text[];
};

const char *config_join(struct config *c, const char *title, const char *value)
{
    size_t size = strlen(title) + strlen(value) + 2;
    struct config_text *joined = malloc(sizeof *joined + size);

    if (!joined)
        return NULL;
    snprintf(joined->text, size, "%s=%s", title, value);
    joined->next = c->texts;
    c->texts = joined;
    return joined->text;
}

/* ---- Lines */

/* Cuts the blanks at both ends. */
static char *trim(char *text)
{
    size_t len;

    text += strspn(text, BLANKS);
    for (len = strlen(text); len > 0 && strchr(BLANKS, text[len - 1]); len--)
        ;
    text[len] = '\0';
    return text;
}

static int unknown_section(const struct setting *at, struct error *e)
{
    const char *names[SECTION_COUNT + 1] = {NULL}, *likely;
    char all[256];

    for (size_t i = 0; i < SECTION_COUNT; i++)
        names[i] = sections[i].name;
    list_sections(all, sizeof all);
    likely = likely_word(at->section, names);
    return error_set(e, WEIR_ECONFIG, "%.400s:%d: [%.60s]: unknown section; %s%s%s", at->file, at->line,
                     at->section, likely ? "did you mean [" : "there are ", likely ? likely : all,
                     likely ? "]?" : "");
}

/* True for "mail,,sms" and the like. */
static bool has_empty_name(const char *names)
{
    return *names == ',' || names[strlen(names) - 1] == ',' || strstr(names, ",,");
}

/* Reads "[handler mail]": what stands behind it is of that section. */
static int begin_section(char *line, struct setting *at, struct error *e)
{
    char *end = line + strlen(line) - 1;
    size_t i = 0, len;
    struct error why;

    if (*end != ']')
        return error_set(e, WEIR_ECONFIG, "%.400s:%d: %.60s: the ] is missing; write [worker]", at->file,
                         at->line, line);
    *end = '\0';
    line = trim(line + 1);
    len = strcspn(line, BLANKS);
    at->title = trim(line + len);
    line[len] = '\0';
    at->section = line;
    while (i < SECTION_COUNT && strcmp(sections[i].name, line) != 0)
        i++;
    if (i == SECTION_COUNT)
        return unknown_section(at, e);
    at->section = sections[i].name;
    if (*at->title && strcmp(line, "handler") != 0 && limit_name_check(line, at->title, &why) < 0)
        return error_set(e, WEIR_ECONFIG, "%.400s:%d: %s", at->file, at->line, why.text);
    if (*at->title && (at->title[strspn(at->title, TITLE_CHARS)] || has_empty_name(at->title)))
        return error_set(e, WEIR_ECONFIG, "%.400s:%d: [%s %.60s]: not a name; use A-Z a-z 0-9 _ . -",
                         at->file, at->line, line, at->title);
    if (!sections[i].title == !*at->title)
        return 0;
    return error_set(e, WEIR_ECONFIG, "%.400s:%d: [%s]: %s; write [%s%s%s]", at->file, at->line, line,
                     sections[i].title ? "a name is missing" : "it takes no name", line,
                     sections[i].title ? " " : "", sections[i].title ? sections[i].title : "");
}

static int read_line(struct config *c, char *line, struct setting *at, struct error *e)
{
    char *equals;

    line = trim(line);
    if (!*line || *line == '#' || *line == ';')
        return 0;
    if (*line == '[')
        return begin_section(line, at, e);
    equals = strchr(line, '=');
    if (!equals || equals == line)
        return error_set(e, WEIR_ECONFIG,
                         "%.400s:%d: %.60s: not NAME = VALUE; write that, or # before a comment", at->file,
                         at->line, line);
    *equals = '\0';
    at->name = trim(line);
    at->value = trim(equals + 1);
    if (!*at->value)
        return error_set(e, WEIR_ECONFIG, "%.400s:%d: %.60s: its value is empty; give one, or leave it out",
                         at->file, at->line, at->name);
    return config_say(c, at, e);
}

int config_read(struct config *c, size_t i, char *text, size_t len, struct error *e)
{
    struct setting at = {.section = "", .title = "", .file = c->files[i].path};
    size_t mark = len > 2 && memcmp(text, BYTE_ORDER_MARK, 3) == 0 ? 3 : 0;
    int status = 0;

    for (char *line = text + mark, *end; status == 0 && line < text + len; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text + len - line));
        end = end ? end : text + len;
        *end = '\0';
        at.line++;
        status =
            strlen(line) == (size_t)(end - line)
                ? read_line(c, line, &at, e)
                : error_set(e, WEIR_ECONFIG, "%.400s:%d: has a NUL byte; give a text file", at.file, at.line);
    }
    return status;
}

/* ---- Files */

/* Reads all of it into f->text; *len. An errno when it cannot. */
static int take_in(struct config_file *f, size_t *len)
{
    FILE *from = file_open(f->path);
    struct stat about;
    int failed = 0;

    if (!from)
        return errno;
    if (fstat(fileno(from), &about) == 0)
        f->open_to_all = about.st_mode & S_IROTH;
    f->text = malloc(FILE_MOST + 1);
    *len = f->text ? fread(f->text, 1, FILE_MOST + 1, from) : 0;
    if (!f->text || ferror(from))
        failed = errno;
    fclose(from);
    return *len > FILE_MOST ? EFBIG : failed;
}

/* must: the file was named by somebody. */
static int read_file(struct config *c, size_t i, bool must, struct error *e)
{
    struct config_file *f = &c->files[i];
    size_t len = 0;
    int failed = take_in(f, &len);

    if (failed && !must && (failed == ENOENT || failed == ENOTDIR || failed == EACCES)) {
        f->failed = failed == EACCES ? failed : 0;
        return 0;
    }
    if (failed)
        return error_set(e, WEIR_ECONFIG, "%.400s: %s; see to it, or name another%s", f->path,
                         file_why(failed), must ? "" : " by --config");
    return config_read(c, i, f->text, len, e);
}

int config_load(struct config *c, const char *path, struct error *e)
{
    const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME"), *given = getenv("WEIR_CONFIG");
    int status = 0, printed = 0;

    *c = (struct config){.at = NULL};
    path = path ? path : given && *given ? given : NULL;
    if (path)
        printed = asprintf(&c->files[0].path, "%s", path);
    else
        printed = asprintf(&c->files[0].path, "%s", SYSCONFDIR "/weir/weir.conf");
    if (printed > 0 && !path && base && *base == '/')
        printed = asprintf(&c->files[1].path, "%s/weir/weir.conf", base);
    else if (printed > 0 && !path && home && *home == '/')
        printed = asprintf(&c->files[1].path, "%s/.config/weir/weir.conf", home);
    if (printed < 0)
        return error_no_memory(e, "config");
    for (size_t i = 0; status == 0 && i < CONFIG_FILES_MOST && c->files[i].path; i++)
        status = read_file(c, i, path, e);
    return status;
}

void config_free(struct config *c)
{
    for (size_t i = 0; i < CONFIG_FILES_MOST; i++) {
        free(c->files[i].path);
        free(c->files[i].text);
    }
    for (struct config_text *next, *text = c->texts; text; text = next) {
        next = text->next;
        free(text);
    }
    free(c->at);
    *c = (struct config){.at = NULL};
}
