#include "tests/library.h"

#include "tests/test.h"

#define SOURCE_SIZE (128 << 10)

static void add_file(FILE *source, const char *path)
{
    FILE *file = fopen(path, "r");
    int c;

    if (!file)
        fail_msg("%s: cannot be opened; tests run in the project's folder", path);
    while ((c = fgetc(file)) != EOF)
        fputc(c, source);
    fclose(file);
}

/* "throttle/gate.lua" is called gate. */
static void add_module(FILE *source, const char *path)
{
    const char *name = strrchr(path, '/') + 1;

    fprintf(source, "local %.*s = (function()\n", (int)strcspn(name, "."), name);
    add_file(source, path);
    fprintf(source, "end)()\n");
}

void library_load(struct server *server, const char *const *files, const char *text)
{
    char source[SOURCE_SIZE], *answer;
    FILE *out = fmemopen(source, sizeof source, "w");

    assert_non_null(out);
    fprintf(out, "#!lua name=weir_test\n");
    add_file(out, "core/script/base.lua");
    for (; *files; files++)
        add_module(out, *files);
    fprintf(out, "%s", text);
    assert_int_equal(fclose(out), 0);
    answer = server_ask(server, "FUNCTION", "LOAD", "REPLACE", source, NULL);
    assert_string_equal(answer, "weir_test");
    free(answer);
}

void library_begin(struct args *a, const char *name, const char *prefix, int64_t now_us)
{
    char function[64];

    snprintf(function, sizeof function, "weir_DIGEST_%s", name); /* core/script/embed.sh has not been here */
    args_clear(a);
    args_add(a, "FCALL");
    args_add(a, function);
    args_add(a, "1");
    args_add(a, prefix);
    if (now_us < 0)
        args_add(a, "");
    else
        args_add_int(a, now_us);
}
