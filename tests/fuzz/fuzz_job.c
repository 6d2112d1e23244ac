#include <jansson.h>

#include "queue/job/job.h"
#include "tests/fuzz/fuzz.h"

/* Jansson takes more levels than we do. */
static bool is_deep(const char *text, size_t len)
{
    int depth = 0, most = 0;

    for (size_t i = 0; i < len; i++) {
        depth += (text[i] == '[' || text[i] == '{') - (text[i] == ']' || text[i] == '}');
        most = depth > most ? depth : most;
    }
    return most > 500;
}

/* What jansson takes, with and without repeated members, stands around what we take. */
static void compare(const char *text, size_t len)
{
    struct error e;
    bool ours = json_check(text, len, &e) == 0;
    json_t *strict = json_loadb(text, len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    json_t *lax = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

    if (!is_deep(text, len) && !memchr(text, 0, len)) { /* jansson ends at a NUL */
        must_hold(ours || !strict);
        must_hold(lax || !ours);
    }
    json_decref(strict);
    json_decref(lax);
}

static void touch_view(const struct job_view *view)
{
    const struct span *spans[] = {&view->id,   &view->type, &view->queue, &view->key,
                                  &view->args, &view->meta, &view->batch, &view->traceparent};

    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        fuzz_touch(spans[i]->at, spans[i]->len);
}

/* Rewritten it is a job, the same in all that we read of it; and again it stays as it is. */
static void rewrite(const char *text, size_t len)
{
    struct text once = {0}, twice = {0};
    struct job_view view, again;
    struct error e;

    if (job_rewrite(&once, text, len, &view, &e) == 0) {
        must_hold(job_read(once.at, once.len, &again, &e) == 0);
        touch_view(&again);
        must_hold(again.type.len == view.type.len && memcmp(again.type.at, view.type.at, view.type.len) == 0);
        must_hold(again.id.len == view.id.len && memcmp(again.id.at, view.id.at, view.id.len) == 0);
        must_hold(again.cost == view.cost && again.timeout_us == view.timeout_us);
        must_hold(job_rewrite(&twice, once.at, once.len, NULL, &e) == 0);
        must_hold(twice.len == once.len && memcmp(twice.at, once.at, once.len) == 0);
    }
    text_free(&once);
    text_free(&twice);
}

int fuzz_job(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct text wrapped = {0};
    struct job_view view;
    struct error e;

    compare(text, size);
    if (job_read(text, size, &view, &e) == 0) {
        touch_view(&view);
        (void)job_is_keyless((struct span){text, size}, "key");
        (void)job_is_keyless((struct span){text, size}, "args.a.b");
    }
    rewrite(text, size);
    if (job_wrap(&wrapped, "t", text, size, &view, &e) == 0)
        must_hold(job_read(wrapped.at, wrapped.len, &view, &e) == 0);
    text_free(&wrapped);
    free(text);
    return 0;
}
