/* The kept corpora of the fuzz targets (tests/fuzz/fuzz.h), as plain tests: each file once. */
#include <dirent.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tests/test.h"

#define FILE_MOST (64 * 1024)
#define CORPUS_MOST (500 * 1024) /* of all targets */

static size_t total;

/* Into the heap, as long as it is: a sanitizer sees what is read behind it. */
static void run_file(fuzz_target *target, const char *path)
{
    static uint8_t bytes[FILE_MOST];
    FILE *file = fopen(path, "rb");
    uint8_t *data;
    size_t size;

    assert_non_null(file);
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(size < sizeof bytes);
    data = malloc(size ? size : 1);
    assert_non_null(data);
    memcpy(data, bytes, size);
    target(data, size);
    free(data);
    total += size;
}

static void run_corpus(const char *name, fuzz_target *target)
{
    char path[512];
    struct dirent *entry;
    DIR *folder;
    int files = 0;

    snprintf(path, sizeof path, "tests/fuzz/corpus/%s", name);
    folder = opendir(path);
    if (!folder)
        fail_msg("%s: run it from the root of the source", path);
    while ((entry = readdir(folder))) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "tests/fuzz/corpus/%s/%.200s", name, entry->d_name);
        run_file(target, path);
        files++;
    }
    closedir(folder);
    assert_true(files > 0);
}

#define TARGETS(of)                                                                                          \
    of(job) of(entry) of(rules) of(cron) of(address) of(ndjson) of(pipe) of(http) of(api) of(replies)        \
        of(trace) of(search)

#define CORPUS(name)                                                                                         \
    TEST(test_##name)                                                                                        \
    {                                                                                                        \
        run_corpus(#name, fuzz_##name);                                                                      \
    }
TARGETS(CORPUS)

TEST(test_the_corpora_are_small)
{
    assert_true(total < CORPUS_MOST);
}

TESTS(NULL, NULL)
