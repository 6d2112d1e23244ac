/* Leaving: nothing is left here, and Redis is told. */
#include "core/clock.h"
#include "worker/partition/inside.h"

static void ask_to_leave(struct partition *p);

static void end_loop_if_last(struct worker *w)
{
    for (int i = 0; i < w->partition_count; i++)
        if (!w->partitions[i]->left)
            return;
    worker_end_loop(w);
}

/* Hears that Redis knows that this partition leaves. reply NULL: Redis is away, and what is still leased returns when the lease ends. */
static void on_left(void *arg, const struct redisReply *reply)
{
    struct partition *p = arg;
    struct worker *w = p->worker;
    int kept = p->settling.here + p->settling.finished.count + p->settling.sent.count;
    struct adopt adopt = {0};
    struct error e = {.text = "Redis is away"}, left;

    if ((!reply || adopt_reply(reply, w->options.queue_count, &adopt, &e) != 0) && kept > 0 &&
        w->ending.error.status == 0) {
        error_set(
            &left, WEIR_EUNREACHABLE,
            "worker: stopped with %d jobs that could not be given back (%.200s); they return when their "
            "lease ends",
            kept, e.text);
        worker_fail(w, &left);
    }
    adopt_free(&adopt);
    if (adopt.left > 0) {
        ask_to_leave(p);
    } else {
        p->left = true;
        end_loop_if_last(w);
    }
}

static void on_leave_answered(void *arg, const struct redisReply *reply)
{
    request_answered(arg);
    on_left(arg, reply);
}

void leaving_write(struct partition *p, struct args *a)
{
    const struct options *options = &p->worker->options;
    struct adopt_call call = {.worker = "",
                              .old_worker = p->session.id,
                              .group = p->adoption.group,
                              .info = "",
                              .birth = "",
                              .queues = {options->queues, options->queue_count}};

    adopt_request(a, p->prefix, -1, &call);
}

static void ask_to_leave(struct partition *p)
{
    struct args a = {0};

    recording_send(p, &a, clock_mono_us(), true);
    leaving_write(p, &a);
    request_send(p, &a, on_leave_answered);
}

void leaving_begin(struct partition *p)
{
    if (p->leaving)
        return;
    p->leaving = true;
    if (p->session.registered && link_is_up(p->link))
        ask_to_leave(p);
    else
        on_left(p, NULL);
}

bool leaving_if_done(struct partition *p)
{
    const struct stop *stop = &p->worker->stop;
    bool done = stop->forced_us ? !p->settling.finished.head : stop->since_us && settling_is_idle(p);

    if (done)
        leaving_begin(p);
    return done;
}
