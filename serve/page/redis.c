/* Redis and its settings, as the doctor sees them: what is wrong first. The structures are left to weir doctor, which goes over
 * all of them. */
#include "queue/doctor/doctor.h"

#include <stdio.h>
#include <string.h>

#include "serve/page/parts.h"
#include "view/json.h"

static const char *const order[] = {"wrong", "warning", "repaired", "ok"};

static void write_check(struct page *p, const json_t *check)
{
    html(p->h, "<tr>");
    put_doc_state(p, "state", check);
    html(p->h, "<th scope=\"row\">%s</th>", json_text_of(check, "name"));
    put_doc_text(p, "found", check, "text");
    put_doc_text(p, "do", check, "do");
    html(p->h, "</tr>");
}

static int64_t count_of(const json_t *checks, const char *state)
{
    int64_t count = 0;
    json_t *check;
    size_t i;

    json_array_foreach(checks, i, check)
        count += strcmp(json_text_of(check, "state"), state) == 0;
    return count;
}

static void write_verdict(struct page *p, const json_t *checks)
{
    int64_t wrong = count_of(checks, "wrong"), warnings = count_of(checks, "warning");

    html(p->h, "<p class=\"note %r\"><b>%r</b> %n of %n checks found something.</p>",
         wrong      ? "wrong"
         : warnings ? "warning"
                    : "good",
         wrong      ? "Something is wrong."
         : warnings ? "It works; look at this."
                    : "All is well.",
         wrong + warnings, (int64_t)json_array_size(checks));
}

static void write_checks(struct page *p, const json_t *checks)
{
    json_t *check;
    size_t i;

    put_table(p, "", "State|Check|Found|Do");
    for (size_t state = 0; state < sizeof order / sizeof *order; state++)
        json_array_foreach(checks, i, check)
            if (strcmp(json_text_of(check, "state"), order[state]) == 0)
                write_check(p, check);
    put_table_end(p);
}

unsigned page_redis(struct page *p, const char *name)
{
    struct doctor d = {.checks = NULL};
    int status = client_at(p->w, 0);
    bool usable;

    (void)name;
    do {
        d.only_wrong = p->w->at > 0;
        d.looks_at = p->w->at > 0 ? p->w : NULL;
        if (status == 0)
            status = doctor_setup(p->w, -1, false, &d, &usable);
    } while (client_at_next(p->w, &status));
    if (status == 0) {
        snprintf(p->title, sizeof p->title, "Redis");
        html(p->h, "<h1>Redis</h1><p class=\"lead\">Its settings and rights. <code>weir doctor</code> checks "
                   "all that Weir has "
                   "stored there too.</p>");
        write_verdict(p, d.checks);
        write_checks(p, d.checks);
    }
    doctor_free(&d);
    return status < 0 ? page_failed(p, &p->w->error) : 200;
}
