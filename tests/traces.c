#include "tests/traces.h"

#include <inttypes.h>
#include <unistd.h>

#include "tests/test.h"

char trace_folder[] = "/tmp/weir-verify-XXXXXX";
char trace_paths[TRACES][64];
struct error trace_error;

int traces_begin(void **state)
{
    if (!mkdtemp(trace_folder))
        return -1;
    for (int i = 0; i < TRACES; i++)
        snprintf(trace_paths[i], sizeof trace_paths[i], "%s/trace.%d", trace_folder, i);
    return 0;
}

int traces_end(void **state)
{
    for (int i = 0; i < TRACES; i++)
        unlink(trace_paths[i]);
    return rmdir(trace_folder);
}

void traces_open(struct traces *t)
{
    for (int i = 0; i < TRACES; i++) {
        t->files[i] = fopen(trace_paths[i], "w");
        assert_non_null(t->files[i]);
        t->lines[i] = 0;
    }
}

void traces_close(struct traces *t)
{
    for (int i = 0; i < TRACES; i++)
        assert_int_equal(fclose(t->files[i]), 0);
}

void traces_add_cost(struct traces *t, int file, const char *type, int64_t slot_us, int64_t late_us,
                     const char *rules, int64_t cost)
{
    fprintf(t->files[file],
            "{\"slot\":%" PRId64 ",\"start\":%" PRId64 ",\"type\":\"%s\",\"cost\":%" PRId64
            ",\"id\":\"%d.%zu\",\"limits\":\"rate-%s=%s\"}\n",
            slot_us, slot_us + late_us, type, cost, file, ++t->lines[file], type, rules);
}

void traces_add(struct traces *t, int file, const char *type, int64_t slot_us, int64_t late_us,
                const char *rules)
{
    traces_add_cost(t, file, type, slot_us, late_us, rules, 1);
}

struct verify traces_replay(int files)
{
    struct verify v;

    assert_int_equal(verify_init(&v, &trace_error), 0);
    for (int i = 0; i < files; i++) {
        size_t torn_line;

        if (verify_read(&v, trace_paths[i], &torn_line, &trace_error) < 0)
            fail_msg("%s", trace_error.text);
        assert_int_equal(torn_line, 0);
    }
    if (verify_replay(&v, &trace_error) < 0)
        fail_msg("%s", trace_error.text);
    return v;
}

void traces_write(const char *text)
{
    FILE *f = fopen(trace_paths[0], "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}
