#include "tests/traces.h"

#include <inttypes.h>
#include <unistd.h>

#include "tests/test.h"

char trace_folder[] = "/tmp/weir-verify-XXXXXX";
char trace_paths[TRACES][64];
struct error trace_error;
struct traces traces;
struct verify verified;

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
    verify_free(&verified);
    for (int i = 0; i < TRACES; i++)
        unlink(trace_paths[i]);
    return rmdir(trace_folder);
}

void traces_open(void)
{
    for (int i = 0; i < TRACES; i++) {
        traces.files[i] = fopen(trace_paths[i], "w");
        assert_non_null(traces.files[i]);
        traces.lines[i] = 0;
    }
}

void traces_close(void)
{
    for (int i = 0; i < TRACES; i++)
        assert_int_equal(fclose(traces.files[i]), 0);
}

void traces_add_cost(int file, const char *type, int64_t slot_us, int64_t late_us, const char *rules,
                     int64_t cost)
{
    fprintf(traces.files[file],
            "{\"slot\":%" PRId64 ",\"start\":%" PRId64 ",\"type\":\"%s\",\"cost\":%" PRId64
            ",\"id\":\"%d.%zu\",\"limits\":\"rate-%s=%s\"}\n",
            slot_us, slot_us + late_us, type, cost, file, ++traces.lines[file], type, rules);
}

void traces_add(int file, const char *type, int64_t slot_us, int64_t late_us, const char *rules)
{
    traces_add_cost(file, type, slot_us, late_us, rules, 1);
}

void replay(int files)
{
    verify_free(&verified);
    assert_int_equal(verify_init(&verified, &trace_error), 0);
    for (int i = 0; i < files; i++) {
        size_t torn_line;

        fail_if(verify_read(&verified, trace_paths[i], &torn_line, &trace_error) < 0, "%s", trace_error.text);
        assert_int_equal(torn_line, 0);
    }
    fail_if(verify_replay(&verified, &trace_error) < 0, "%s", trace_error.text);
}

void traces_write(const char *text)
{
    FILE *f = fopen(trace_paths[0], "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}
