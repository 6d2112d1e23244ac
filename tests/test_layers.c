/* The layers, checked by the text of the source: arrows point down only, each dependency is known in one
 * place, keys are named and jobs changed by Lua alone. The rules are the tables at the top; every file of the
 * tree is read line by line.
 *
 *   cli -> worker, producer, view -> queue -> throttle -> core     worker, producer and view
 *   cli -> serve -> producer, view                                 do not know each other, serve no worker
 *
 * A layer's folders have an order of their own, by their ranks; queue/ has no file beside its folders.
 * include/weir.h stands beside them: all may see it, examples see nothing else. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/program.h"
#include "tests/test.h"

#define PATH_SIZE 512
#define LINE_SIZE 4096
#define OUTSIDE (-1) /* no layer: may see all of them */

static const struct folder {
    const char *name;
    int rank; /* sees its own folder, and those below it: is_below() */
} folders[] = {
    {"core", 0},
    {"core/log", 1},
    {"core/script", 1},
    {"core/wire", 2},
    {"core/redis", 3},
    {"core/client", 4},
    {"throttle/algorithm", 10},
    {"throttle", 11},
    {"throttle/take", 12},
    {"throttle/verify", 12},
    {"queue/job", 20},
    {"queue/state", 21},
    {"queue/enqueue", 22},
    {"queue/dead", 22},
    {"queue/turn", 23},
    {"queue/claim", 24},
    {"queue/limits", 25},
    {"queue/hold", 26},
    {"queue/schedule", 25},
    {"queue/status", 26},
    {"queue/history", 26},
    {"queue/inspect", 27},
    {"queue/queues", 28},
    {"queue/batch", 28},
    {"queue/doctor", 29},
    {"queue/call", 29},
    {"producer", 30},
    {"worker/way", 30},
    {"worker/mind", 30},
    {"worker/parts", 31},
    {"worker/partition", 32},
    {"worker", 33},
    {"view", 30},
    {"serve/page", 40},
    {"serve", 41},
    {"cli/print", 50},
    {"cli", 51},
    {"cli/document", 52},
    {"cli/rate", 53},
    {"cli/apply", 53},
    {"cli/dead", 53},
    {"cli/top", 53},
    {"cli/command", 54},
    {"include", 0},
    {"tests", OUTSIDE},
    {"bench", OUTSIDE},
    {"examples", OUTSIDE},
    {"packaging", OUTSIDE},
    {"debian", OUTSIDE},
};
#define FOLDER_COUNT COUNT(folders)

/* A text that only some files of the layers may have. where: beginnings of paths. */
static const struct reserved {
    const char *text;
    const char *where[10];
} reserved[] = {
    {"#include <ev.h>",
     {"core/redis/link.c", "core/redis/master.h", "worker/parts/shared.h", "worker/parts/ending.h",
      "worker/partition/partition.h", "worker/way/curl_loop.h", "worker/way/pipe_child.h",
      "worker/way/rest.h", "serve/"}},
    {"#include <hiredis/",
     {"core/", "producer/stream.c", "producer/enqueue.c", "worker/exit.c", "worker/parts/waking.c",
      "serve/take_batcher.c"}},
    {"#include \"core/client/reply.h\"",
     {"core/client/answer.c", "core/client/client.c", "throttle/", "queue/"}},
    {"#include <microhttpd.h>", {"serve/"}},
    {"#include <jansson.h>",
     {"view/json.h", "core/client/answer.h", "throttle/key.c", "throttle/verify/verify.c",
      "worker/partition/adopt.c"}},
    {"#include \"core/client/answer.h\"",
     {"core/client/answer.c", "core/client/pages.h", "queue/", "view/document.h"}},
    {"#include \"core/client/pages.h\"", {"core/client/pages.c", "queue/"}},
    {"#include <curl/", {"worker/way/curl_loop.h"}},
    {"#include <openssl/", {"core/wire/tls.c"}},
    {"#include <glib", {"core/zone.c", "throttle/key.c"}},
    {"getaddrinfo(", {"core/wire/resolve.c", "serve/listen.c"}}, /* it waits as long as it likes */
    {"setlocale", {"cli/top/screen.c"}},                         /* a host program may */
    {"#include <curses.h>", {"cli/top/screen.c"}},
    {"strtod", {"core/decimal."}},
    {"atof(", {NULL}},
    {"vsnprintf(",
     {"core/decimal.", "worker/parts/log_once.c", "worker/way/trace.c", "worker/way/weir_job.c",
      "throttle/rule.c", "cli/", "view/"}},
    {"localtime",
     {"cli/", "view/format.c", "core/duration.c"}}, /* the zone of the whole process; core/zone.h has any */
    {"%s:{0}:", {"core/client/client.c"}},
    {"%sbatch:", {"queue/enqueue/enqueue.c"}}, /* a look, for which no script is needed */
    {"FCALL", {"core/"}},
    {"\"RPUSH\"", {"worker/parts/waking.c"}}, /* a wake-up, no job */
    {"'TIME'", {"core/script/base.lua"}},
    {" printf(", {"view/output.c"}}, /* words of others are printed in one place */
    {"fprintf(", {"view/output.c"}},
    {"fwrite(", {"view/output.c", "cli/dead/dead_show.c"}},
    {"json_write",
     {"core/script/base.lua", "queue/limits/rates.lua",
      "queue/call/document.lua"}}, /* never a job; replies are written by answer() */
};

/* The worker's mind is pure: it sees no clock, loop, socket or thread. Beginnings of what its files include; and what they draw by has a
 * state. */
static const char *const mind_sees[] = {"core/number.h",   "core/random.h",   "core/client/partition.h",
                                        "throttle/gate.h", "queue/job/job.h", "queue/turn/turn.h",
                                        "worker/mind/"};
static const char *const mind_lacks[] = {"random_fraction(", "random_seed(", "time.h>", "pthread.h>"};

/* Keys and writing commands that no C file of the layers may name. */
static const char *const lua_only[] = {
    "%squeue:",    "%slane:",   "%swake:",  "%sheld:",  "%sgate:",   "%sactive:", "%sbell:",
    "%sspare:",    "%sid:",     "%sstats:", "%slimits", "%stypes",   "%squeues",  "%slater",
    "%sworkers",   "%sreap",    "%sduty",   "%sdead",   "\"LPUSH\"", "\"LPOP\"",  "\"RPOP\"",
    "\"LMOVE\"",   "\"LTRIM\"", "\"LREM\"", "\"ZADD\"", "\"ZREM\"",  "\"HSET\"",  "\"HDEL\"",
    "\"HINCRBY\"", "\"SET\"",   "\"DEL\"",  "\"SADD\"", "\"SREM\"",  "\"INCR\"",
};

/* Lua's and Redis's globals, which only core/script/base.lua names; it has locals for those that are needed. */
static const char *const lua_globals[] = {
    "_G",     "math",   "string",       "table", "redis",  "cjson",        "cmsgpack",
    "bit",    "struct", "os",           "print", "select", "next",         "assert",
    "rawget", "rawset", "setmetatable", "KEYS",  "xpcall", "getmetatable", "loadstring",
};

/* The lines that begin every script, besides its name. */
static const char *const header_lines[] = {"-- ARGV: now", "-- role: ", "-- reply: "};
#define HEADER_COUNT COUNT(header_lines)

/* One look at a tree. */
struct look {
    const char *root;
    int files, wrong;
    bool quiet;
};

static void complain(struct look *look, const char *path, int line, const char *why, const char *what)
{
    look->wrong++;
    if (!look->quiet)
        printf("%s:%d: %s: %s\n", path, line, why, what);
}

/* The folder of a file; those outside of the layers have folders of their own, which are not listed. */
static const struct folder *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t top = strcspn(path, "/"), len = slash ? (size_t)(slash - path) : 0;

    for (size_t i = 0; i < FOLDER_COUNT; i++) {
        const struct folder *f = &folders[i];
        size_t wanted = f->rank == OUTSIDE ? top : len;

        if (len && strlen(f->name) == wanted && memcmp(f->name, path, wanted) == 0)
            return f;
    }
    return NULL;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len > end_len && strcmp(text + len - end_len, end) == 0;
}

static bool exists(const struct look *look, const char *path)
{
    const char *whole = textf("%s/%s", look->root, path);

    return access(whole, R_OK) == 0;
}

/* Layers by the tens of their ranks; within a layer its folders by the ranks. */
static bool is_below(const struct folder *to, const struct folder *from)
{
    bool same_layer = strcspn(to->name, "/") == strcspn(from->name, "/") &&
                      strncmp(to->name, from->name, strcspn(to->name, "/")) == 0;

    if (strncmp(from->name, "serve", strlen("serve")) == 0 &&
        strncmp(to->name, "worker", strlen("worker")) == 0)
        return false;
    return to->rank != OUTSIDE && (same_layer ? to->rank < from->rank : to->rank / 10 < from->rank / 10);
}

/* May path see the file target, named as our includes and uses do? */
static void check_arrow(struct look *look, const char *path, int line, const char *target)
{
    const struct folder *from = folder_of(path), *to = folder_of(target);

    if (strcmp(target, "weir.h") == 0)
        return;
    if (!to)
        complain(look, path, line, "names no folder of ours", target);
    else if (!exists(look, target))
        complain(look, path, line, "there is no such file", target);
    else if (strcmp(from->name, "examples") == 0)
        complain(look, path, line, "an example sees weir.h alone", target);
    else if (from->rank != OUTSIDE && to != from && !is_below(to, from))
        complain(look, path, line, "an arrow that does not point down", target);
}

static void check_mind(struct look *look, const char *path, int line, const char *target)
{
    bool sees = strncmp(path, "worker/mind/", strlen("worker/mind/")) != 0;

    for (size_t i = 0; i < COUNT(mind_sees); i++)
        sees |= strncmp(target, mind_sees[i], strlen(mind_sees[i])) == 0;
    if (!sees)
        complain(look, path, line, "not for the worker's mind", target);
}

static void check_include(struct look *look, const char *path, int line, const char *text)
{
    static const char begin[] = "#include \"";
    char target[PATH_SIZE];

    if (strncmp(text, begin, strlen(begin)) != 0)
        return;
    snprintf(target, sizeof target, "%.*s", (int)strcspn(text + strlen(begin), "\""), text + strlen(begin));
    check_arrow(look, path, line, target);
    check_mind(look, path, line, target);
}

static void check_reserved(struct look *look, const char *path, int line, const char *text)
{
    for (size_t i = 0; i < COUNT(reserved); i++) {
        bool here = false;

        for (const char *const *where = reserved[i].where; *where; where++)
            here |= strncmp(path, *where, strlen(*where)) == 0;
        if (!here && strstr(text, reserved[i].text))
            complain(look, path, line, "not here", reserved[i].text);
    }
    for (size_t i = 0; i < COUNT(mind_lacks); i++)
        if (strncmp(path, "worker/mind/", strlen("worker/mind/")) == 0 && strstr(text, mind_lacks[i]))
            complain(look, path, line, "not for the worker's mind", mind_lacks[i]);
    for (size_t i = 0; !ends_with(path, ".lua") && i < COUNT(lua_only); i++)
        if (strstr(text, lua_only[i]))
            complain(look, path, line, "only Lua names keys and changes them", lua_only[i]);
}

/* ---- Lua */

static const char letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"; /* of names */

/* A Lua file and what it says of itself. */
struct module {
    const char *path;
    char name[64];
    char uses[32][64];
    bool used[32];
    int count;
    char locals[2 * LINE_SIZE]; /* " a b ": declared in a line "local a, b = ..." */
};

/* The file of a module: "lease" is queue/job/lease.lua. */
static bool find_module(const struct look *look, const char *name, char path[PATH_SIZE])
{
    for (size_t i = 0; i < FOLDER_COUNT; i++) {
        snprintf(path, PATH_SIZE, "%s/%s.lua", folders[i].name, name);
        if (folders[i].rank != OUTSIDE && exists(look, path))
            return true;
    }
    return false;
}

/* The modules that a file needs: "-- uses: bell lease". */
static void check_uses(struct look *look, struct module *m, int line, char *text)
{
    static const char begin[] = "-- uses: ";
    char *rest = text + strlen(begin), *name, path[PATH_SIZE];

    if (strncmp(text, begin, strlen(begin)) != 0)
        return;
    while ((name = strsep(&rest, " \n"))) {
        if (!*name)
            continue;
        assert_true(m->count < 32);
        snprintf(m->uses[m->count++], sizeof m->uses[0], "%s", name);
        if (find_module(look, name, path))
            check_arrow(look, m->path, line, path);
        else
            complain(look, m->path, line, "there is no such module", name);
    }
}

/* Leaves of a line what is no comment and in no quotes. */
static void strip(char *text)
{
    char *to = text, quote = '\0';

    for (const char *at = text; *at && (quote || strncmp(at, "--", 2) != 0); at++) {
        if (quote && *at == '\\' && at[1])
            at++;
        else if (quote && *at == quote)
            quote = '\0';
        else if (!quote && (*at == '\'' || *at == '"'))
            quote = *at;
        else if (!quote)
            *to++ = *at;
    }
    *to = '\0';
}

static bool is_local(const struct module *m, const char *word)
{
    const char *spaced = textf(" %s ", word);

    return strstr(m->locals, spaced) != NULL;
}

static void read_locals(struct module *m, FILE *file)
{
    char line[LINE_SIZE], *rest, *word;
    size_t len = 0;

    while (fgets(line, sizeof line, file)) {
        rest = strstr(line, "local ");
        if (!rest)
            continue;
        rest += strlen("local ");
        rest[strcspn(rest, "=\n")] = '\0';
        while ((word = strsep(&rest, ", "))) {
            assert_true(len + strlen(word) + 4 < sizeof m->locals);
            len += (size_t)sprintf(m->locals + len, " %s ", word);
        }
    }
}

static void check_word(struct look *look, struct module *m, int line, const char *word, bool has_fields)
{
    char path[PATH_SIZE];

    for (size_t i = 0; i < COUNT(lua_globals); i++)
        if (strcmp(word, lua_globals[i]) == 0)
            complain(look, m->path, line, "only core/script/base.lua names a global", word);
    for (int i = 0; i < m->count; i++)
        if (strcmp(word, m->uses[i]) == 0) {
            m->used[i] = true;
            return;
        }
    if (has_fields && strcmp(word, m->name) != 0 && !is_local(m, word) && find_module(look, word, path))
        complain(look, m->path, line, "its line of uses lacks", word);
}

static void check_words(struct look *look, struct module *m, int line, char *text)
{
    char word[64];

    strip(text);
    for (const char *at = text; *(at += strcspn(at, letters));) {
        size_t len = strspn(at, letters);
        bool is_field = at > text && (at[-1] == ':' || (at[-1] == '.' && !(at > text + 1 && at[-2] == '.')));

        snprintf(word, sizeof word, "%.*s", (int)len, at);
        at += len;
        is_field |= strncmp(at, " = ", 3) == 0; /* {field = value}, or a local that is set */
        if (!is_field)
            check_word(look, m, line, word, at[0] == '.' && at[1] != '.');
    }
}

/* A script is a Lua file with arguments; the others are parts. Its header is the comment it begins with. */
static void check_header(struct look *look, const struct module *m, FILE *file)
{
    char line[LINE_SIZE];
    bool found[HEADER_COUNT] = {false}, named = true;

    for (int n = 1; fgets(line, sizeof line, file) && strncmp(line, "--", 2) == 0; n++) {
        for (size_t i = 0; i < HEADER_COUNT; i++)
            found[i] |= strncmp(line, header_lines[i], strlen(header_lines[i])) == 0;
        if (n == 1)
            named = strncmp(line + 3, m->name, strlen(m->name)) == 0 && line[3 + strlen(m->name)] == ':';
    }
    if (!named)
        complain(look, m->path, 1, "does not begin with its name", m->name);
    for (size_t i = 0; found[0] && i < HEADER_COUNT; i++)
        if (!found[i])
            complain(look, m->path, 1, "its header lacks a line", header_lines[i]);
}

/* Does claim_call.lua declare it? There a field of the call is set, or one of a thing that it meets stands alone in its line. */
static bool is_declared(const struct look *look, const char *word)
{
    static const char *const forms[] = {
        "c.%s ",     "c.%s,",       "claim_call.%s ", "claim_call.%s(", "visit.%s,",
        "visit.%s ", "stopped.%s,", "stopped.%s ",    "round.%s,",      "round.%s ",
        " %s = ",    "{%s = ",      "-- %s  "};
    char line[LINE_SIZE];
    bool found = false;
    FILE *file;

    file = fopen(textf("%s/queue/claim/claim_call.lua", look->root), "r");
    while (file && !found && fgets(line, sizeof line, file))
        for (size_t i = 0; i < COUNT(forms); i++)
            found |= strstr(line, textf(forms[i], word)) != NULL;
    if (file)
        fclose(file);
    return found;
}

/* The parts of claim share a call, types and lanes: each field of these is declared in one place. */
static void check_fields(struct look *look, const struct module *m, int line, const char *text)
{
    static const char *const owners[] = {"claim.", "s.", "l.", "visit.", "stopped.", "round."};
    char word[64];

    for (size_t i = 0; strncmp(m->name, "claim_", 6) == 0 && i < COUNT(owners); i++)
        for (const char *at = text; (at = strstr(at, owners[i])); at += strlen(owners[i])) {
            if (at > text && (strchr(letters, at[-1]) || at[-1] == '.'))
                continue;
            snprintf(word, sizeof word, "%.*s", (int)strspn(at + strlen(owners[i]), letters),
                     at + strlen(owners[i]));
            if (!is_declared(look, word))
                complain(look, m->path, line, "claim_call.lua does not declare it", word);
        }
}

/* core/script/base.lua is the top level of the library; every other file returns what is called by its name. */
static void check_module(struct look *look, const char *path, FILE *file)
{
    struct module m = {.path = path};
    char line[LINE_SIZE], last[LINE_SIZE] = "", expected[80];
    const char *name = strrchr(path, '/') + 1;

    snprintf(m.name, sizeof m.name, "%.*s", (int)strcspn(name, "."), name);
    check_header(look, &m, file);
    if (strcmp(path, "core/script/base.lua") == 0)
        return;
    rewind(file);
    read_locals(&m, file);
    rewind(file);
    for (int n = 1; fgets(line, sizeof line, file); n++) {
        snprintf(last, sizeof last, "%s", line);
        check_uses(look, &m, n, line);
        check_words(look, &m, n, line);
        check_fields(look, &m, n, line); /* strip() has left the code */
    }
    for (int i = 0; i < m.count; i++)
        if (!m.used[i])
            complain(look, path, 1, "does not use what it says", m.uses[i]);
    snprintf(expected, sizeof expected, "return %s\n", m.name);
    if (strcmp(last, expected) != 0)
        complain(look, path, 1, "does not end with", expected);
}

static void check_file(struct look *look, const char *path)
{
    char line[LINE_SIZE];
    bool in_layer = folder_of(path)->rank != OUTSIDE;
    FILE *file;

    file = fopen(textf("%s/%s", look->root, path), "r");
    assert_non_null(file);
    look->files++;
    for (int n = 1; fgets(line, sizeof line, file); n++) {
        check_include(look, path, n, line);
        if (in_layer)
            check_reserved(look, path, n, line);
    }
    rewind(file);
    if (ends_with(path, ".lua"))
        check_module(look, path, file);
    fclose(file);
}

static bool is_source(const char *name)
{
    return ends_with(name, ".c") || ends_with(name, ".h") || ends_with(name, ".lua");
}

/* And the folders in it, which belong to its layer. */
static void check_folder(struct look *look, const char *name)
{
    char path[PATH_SIZE];
    struct dirent *entry;
    DIR *folder;

    snprintf(path, sizeof path, "%s/%s", look->root, name);
    folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        snprintf(path, sizeof path, "%s/%s", name, entry->d_name);
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            check_folder(look, path);
        if (!is_source(entry->d_name))
            continue;
        if (!folder_of(path)) {
            complain(look, path, 1, "its folder is no layer", "add it to the table of folders");
            break;
        }
        check_file(look, path);
    }
    if (folder)
        closedir(folder);
}

/* Every folder of the tree that is not hidden and not a build's. */
static void check_tree(struct look *look)
{
    struct dirent *entry;
    DIR *root = opendir(look->root);

    assert_non_null(root);
    while ((entry = readdir(root)))
        if (entry->d_name[0] != '.' && strncmp(entry->d_name, "build", 5) != 0)
            check_folder(look, entry->d_name);
    closedir(root);
}

/* The source: the first folder with include/weir.h, from that of this program upwards. */
static void find_source(char root[PATH_SIZE])
{
    char header[PATH_SIZE + 32];
    ssize_t len = readlink("/proc/self/exe", root, PATH_SIZE - 1);

    assert_true(len > 0);
    root[len] = '\0';
    do {
        assert_non_null(strrchr(root, '/'));
        *strrchr(root, '/') = '\0';
        snprintf(header, sizeof header, "%s/include/weir.h", root);
    } while (access(header, R_OK) != 0);
}

TEST(test_the_source_keeps_its_layers)
{
    char root[PATH_SIZE];
    struct look look = {.root = root};

    find_source(root);
    check_tree(&look);
    assert_true(look.files > 80); /* it has found them */
    assert_int_equal(look.wrong, 0);
}

/* ---- The checker itself: each line alone in a tree of its own, and what it makes of it. */

/* A file, and the folders that it stands in. */
static void write_below(const char *root, const char *path, const char *text)
{
    char folder[192];

    for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
        snprintf(folder, sizeof folder, "%s/%.*s", root, (int)(slash - path), path);
        if (access(folder, R_OK) != 0)
            assert_int_equal(mkdir(folder, 0700), 0);
    }
    write_text(root, path, text);
}

static int wrong_in(const char *path, const char *text)
{
    char folder[64];
    struct look look = {.root = folder, .quiet = true};

    folder_make(folder);
    for (size_t i = 0; i < FOLDER_COUNT; i++)
        write_below(folder, textf("%s/there.h", folders[i].name), "");
    write_below(folder, "core/low.lua", "-- low: a part\nreturn low\n");
    write_below(folder, "queue/turn/high.lua", "-- high: a part\nreturn high\n");
    write_below(folder, path, text);
    check_tree(&look);
    folder_remove(folder);
    return look.wrong;
}

TEST(test_the_checker_finds_what_is_wrong)
{
    static const struct {
        const char *path, *text;
        int wrong;
    } cases[] = {
        {"cli/a.c", "#include \"worker/there.h\"\n#include \"core/there.h\"\n#include \"weir.h\"\n", 0},
        {"cli/a.c", "#include \"cli/there.h\"\n", 0},
        {"core/a.c", "#include \"queue/state/there.h\"\n", 1},
        {"throttle/a.h", "#include \"queue/state/there.h\"\n", 1},
        {"queue/state/a.c", "#include \"worker/there.h\"\n", 1},
        {"worker/a.c", "#include \"producer/there.h\"\n", 1},
        {"producer/a.c", "#include \"worker/there.h\"\n#include \"cli/there.h\"\n", 2},
        {"core/a.c", "#include \"tests/there.h\"\n", 1},
        {"core/a.c", "#include \"there.h\"\n", 1},
        {"core/a.c", "#include \"core/missing.h\"\n", 1},
        {"tests/a.c", "#include \"core/there.h\"\n#include <hiredis/hiredis.h>\n", 0},
        {"tests/a.c", "#include \"there.h\"\n", 1},
        {"tests/deep/a.c", "#include \"core/there.h\"\n#include \"core/missing.h\"\n", 1},
        {"queue/deep/a.c", "int x;\n", 1},
        {"queue/a.c", "int x;\n", 1},
        {"queue/turn/a.c", "#include \"queue/state/there.h\"\n#include \"throttle/take/there.h\"\n", 0},
        {"queue/state/a.c", "#include \"queue/turn/there.h\"\n", 1},
        {"queue/limits/a.c", "#include \"queue/schedule/there.h\"\n", 1},
        {"worker/a.c", "#include \"worker/way/there.h\"\n", 0},
        {"worker/way/a.c", "#include \"worker/there.h\"\n#include \"producer/there.h\"\n", 2},
        {"worker/mind/a.c",
         "#include \"core/there.h\"\n#include \"worker/mind/there.h\"\n#include <time.h>\n", 2},
        {"worker/mind/a.c", "#include <ev.h>\ndouble x = random_fraction();\n", 2},
        {"examples/a.c", "#include \"weir.h\"\n#include <jansson.h>\n", 0},
        {"examples/a.c", "#include \"core/there.h\"\n", 1},
        {"other/a.c", "int x;\n", 1},
        {"serve/a.c", "#include <microhttpd.h>\n#include \"throttle/there.h\"\n#include <ev.h>\n", 0},
        {"serve/a.c", "#include \"worker/there.h\"\n#include \"cli/there.h\"\n", 2},
        {"serve/a.c", "#include \"view/there.h\"\n#include \"producer/there.h\"\n", 0},
        {"view/a.c", "#include \"producer/there.h\"\n#include \"queue/inspect/there.h\"\n", 1},
        {"worker/a.c", "#include <microhttpd.h>\n#include \"serve/there.h\"\n", 2},
        {"core/redis/redis.c", "#include <hiredis/hiredis.h>\n", 0},
        {"core/redis/a.c", "#include \"core/wire/there.h\"\n", 0},
        {"core/wire/a.c", "#include \"core/redis/there.h\"\n", 1},
        {"core/redis/redis.c", "#include <ev.h>\n#include <jansson.h>\n", 2},
        {"worker/turn.c", "#include <hiredis/hiredis.h>\n", 1},
        {"cli/a.c", "#include <ev.h>\n#include <hiredis/hiredis.h>\n#include <jansson.h>\n", 3},
        {"queue/state/a.c", "    snprintf(key, sizeof key, \"%slane:%s\", prefix, lane);\n", 1},
        {"worker/a.c", "    args_add(&a, \"RPUSH\");\n", 1},
        {"queue/state/a.lua", "-- a: a part\ncall('RPUSH', P .. 'later', us(now))\nreturn a\n", 0},
        {"queue/state/a.lua", "-- a: a part\ncall('RPUSH', P .. 'later', us(now))\n", 1},
        {"queue/state/a.lua", "-- a: a part\ncall('TIME')\nreturn a\n", 1},
        {"queue/state/a.lua", "-- a: a part\nredis.call('GET', P)\nreturn a\n", 1},
        {"queue/state/a.lua", "-- a: a part\nlocal n = math.huge .. table.concat(list)\nreturn a\n", 2},
        {"queue/state/a.lua", "-- a: redis.call\nlocal n = c.redis .. 'it\\'s redis.' -- redis.\nreturn a\n",
         0},
        {"queue/state/a.lua", "-- a: a part\nlocal b, low = {next = 1}, {}\nlow.x = b.next\nreturn a\n", 0},
        {"core/script/base.lua", "-- base: all\nlocal call = redis.call\nlocal t = call('TIME')\n", 0},
        {"queue/state/a.lua", "-- a: a part\nlocal x = json_write(job)\nreturn a\n", 1},
        {"queue/state/a.lua", "-- b: another name\nreturn a\n", 1},
        {"queue/state/a.lua",
         "-- a: does\n-- ARGV: now\n-- role: viewer\n-- reply: 1\n-- uses: "
         "low\nlow.x()\nreturn a\n",
         0},
        {"throttle/a.lua", "-- a: a part\n-- uses: high\nlocal h = high\nreturn a\n", 1},
        {"queue/state/a.lua", "-- a: does\n-- ARGV: now, x\n-- reply: 1\n-- uses: gone\ngone()\nreturn a\n",
         2},
        {"queue/state/a.lua", "-- a: a part\n-- uses: low\nlocal low_us = 1\nreturn a\n", 1},
        {"queue/state/a.lua", "-- a: a part\nlow.x(a.low)\nreturn a\n", 1},
        {"queue/claim/claim_call.lua",
         "-- claim_call: a part\nc.made = s.unmade + m.other\nreturn claim_call\n", 1},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int wrong = wrong_in(cases[i].path, cases[i].text);

        if (wrong != cases[i].wrong)
            fail_msg("%s: %s: %d complaints, not %d", cases[i].path, cases[i].text, wrong, cases[i].wrong);
    }
}

/* ---- Circles: files that call each other, by the object files; tests/circles.sh */

/* Lines that circles.sh prints in that folder, for the objects below build there. */
static int circles_in(const char *folder, const char *build)
{
    char root[PATH_SIZE], line[LINE_SIZE];
    FILE *out;
    int lines = 0;

    find_source(root);
    out = popen(textf("cd '%s' && '%s'/tests/circles.sh '%s'", folder, root, build), "r");
    assert_non_null(out);
    for (; fgets(line, sizeof line, out); lines++)
        printf("%s", line);
    assert_int_equal(pclose(out), 0);
    return lines;
}

TEST(test_no_files_call_each_other_in_a_circle)
{
    char root[PATH_SIZE], build[PATH_SIZE];
    ssize_t len = readlink("/proc/self/exe", build, sizeof build - 1);

    assert_true(len > 0);
    build[len] = '\0';
    for (int up = 0; up < 2; up++) /* BUILD/tests/test_layers */
        *strrchr(build, '/') = '\0';
    find_source(root);
    assert_int_equal(circles_in(root, build), 0);
}

TEST(test_a_circle_is_found)
{
    char folder[64];

    folder_make(folder);
    write_below(folder, "core/one.c", "void two(void), one(void);\nvoid one(void) { two(); }\n");
    write_below(folder, "core/two.c", "void two(void), one(void);\nvoid two(void) { one(); }\n");
    write_below(folder, "core/top.c", "void one(void), top(void);\nvoid top(void) { one(); }\n");
    assert_int_equal(system(textf("cd %s && mkdir -p build/core && for f in one two top; do cc -c -o "
                                  "build/core/$f.o core/$f.c; done",
                                  folder)),
                     0);
    assert_int_equal(circles_in(folder, "build"), 2);
    folder_remove(folder);
}

TESTS(NULL, NULL)
