/* The workers that are alive. */
#include <stdio.h>

#include "serve/page/data.h"
#include "serve/page/parts.h"

#define LATE_US 15000000 /* a heartbeat comes every few seconds */

static void write_row(struct page *p, const struct worker_status *w)
{
    bool late = p->now_us - w->seen_us > LATE_US;

    html(p->h,
         "<tr data-key=\"w-%s\"><th scope=\"row\" class=\"mono\"><bdi>%s</bdi></th><td "
         "data-label=\"state\"><span>",
         w->name, w->name);
    put_state(p, late ? "warning" : "alive");
    html(p->h, late ? ": silent" : "");
    html(p->h,
         "</span></td><td class=\"wide\" data-label=\"host\"><bdi>%s</bdi></td><td class=\"n\" "
         "data-label=\"process\">%i</td>",
         w->host, w->pid);
    put_count_cell(p, "running", w->running);
    put_time_cell(p, "last heartbeat", w->seen_us);
    html(p->h, "</tr>");
}

unsigned page_workers(struct page *p, const char *name)
{
    static const char *const columns[] = {"Worker",   "State",    "Host",
                                          "#Process", "#Running", "#Last heartbeat"};
    const struct status *s = data_status(p);

    (void)name;
    if (!s)
        return page_failed(p, p->e);
    snprintf(p->title, sizeof p->title, "Workers");
    html(p->h, "<h1>Workers <small>%n</small></h1>", (int64_t)s->worker_count);
    put_table(p, "", columns, 6);
    for (size_t i = 0; i < s->worker_count; i++)
        write_row(p, &s->workers[i]);
    if (s->worker_count == 0)
        html(p->h, "<tr class=\"empty\"><td colspan=\"6\">No worker is alive: <code>weir worker</code> "
                   "starts one.</td></tr>");
    put_table_end(p);
    return 200;
}
