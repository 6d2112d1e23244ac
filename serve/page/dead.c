/* The dead jobs: why they died, in groups; then each, the newest first; and what may be done with them. */
#include "view/dead.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/duration.h"
#include "serve/page/parts.h"
#include "view/jobs.h"

#define ROWS 10 /* with the groups five screens of a telephone */
#define GROUPS 8
#define LOOK_US 100000 /* so long a page looks for groups */

/* ---- Which: what the form asks for, and the search that it stands for */

struct wanted {
    char type[129], reason[512], newer[40], older[40]; /* "": any */
    char text[JOB_SEARCH_SIZE];                        /* state:dead type:mail reason:"no luck" */
    struct job_search search;
};

static void add_reason(char text[JOB_SEARCH_SIZE], const char *reason)
{
    size_t len = strlen(text);

    len += (size_t)snprintf(text + len, JOB_SEARCH_SIZE - len, " reason:\"");
    for (; *reason && len < JOB_SEARCH_SIZE - 4; reason++) {
        if (*reason == '"' || *reason == '\\')
            text[len++] = '\\';
        text[len++] = *reason;
    }
    strcpy(text + len, "\"");
}

static int make_search(struct page *p, struct wanted *o)
{
    snprintf(o->text, sizeof o->text, "state:dead%s%s%s%s%s%s", *o->type ? " type:" : "", o->type,
             *o->newer ? " died:<" : "", o->newer, *o->older ? " died:>" : "", o->older);
    if (*o->reason)
        add_reason(o->text, o->reason);
    return job_search_read(&o->search, o->text, &p->w->error);
}

static int read_wanted(struct page *p, struct wanted *o)
{
    *o = (struct wanted){.search = {.count = 0}};
    query_value(p->r->query, "type", o->type, sizeof o->type);
    query_value(p->r->query, "newer", o->newer, sizeof o->newer);
    query_value(p->r->query, "older", o->older, sizeof o->older);
    if (!p->r->hide_args)
        query_value(p->r->query, "reason", o->reason, sizeof o->reason);
    return make_search(p, o);
}

static void write_field(struct page *p, const char *label, const char *name, const char *value)
{
    html(p->h, "<label>%r <input type=\"search\" name=\"%r\" value=\"%s\" autocomplete=\"off\"></label>",
         label, name, value);
}

/* Writes a span as the time that it means now, as a search takes it. */
static void fix_span(char span[40])
{
    int64_t us, now_us = clock_wall_us();
    struct error ignored;
    struct tm parts;
    time_t at;

    if (!*span || ago_parse(span, 1, now_us, &us, &ignored) < 0)
        return;
    at = (time_t)((now_us - us) / 1000000);
    strftime(span, sizeof "2026-11-28T09:00:00Z", "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &parts));
}

/* A link to these jobs that means the same hours whenever somebody opens it. */
static void write_fixed_link(struct page *p, const struct wanted *o)
{
    char newer[sizeof o->newer], older[sizeof o->older];

    strcpy(newer, o->newer);
    strcpy(older, o->older);
    fix_span(newer);
    fix_span(older);
    if (strcmp(newer, o->newer) != 0 || strcmp(older, o->older) != 0)
        html(
            p->h,
            "<p class=\"more\"><a href=\"/dead?type=%u&amp;reason=%u&amp;newer=%u&amp;older=%u\">A link that "
            "keeps these hours</a></p>",
            o->type, o->reason, newer, older);
}

static void write_search(struct page *p, const struct wanted *o)
{
    html(p->h, "<form class=\"filter\" action=\"/dead\">");
    write_field(p, "Type", "type", o->type);
    write_field(p, "Reason has", "reason", o->reason);
    write_field(p, "Died in the last", "newer", o->newer);
    write_field(p, "but not in the last", "older", o->older);
    html(p->h, "<button>Show</button></form>");
    write_fixed_link(p, o);
}

static void write_buttons(struct page *p, const char *search)
{
    put_ask(p, "Retry", "jobs-retry", search);
    put_ask(p, "Remove", "jobs-remove", search);
}

/* ---- Groups */

struct groups {
    json_t *rows;
    int64_t end_us; /* monotonic */
};

static int take_groups(const json_t *page, void *arg)
{
    struct groups *groups = arg;
    int status = dead_groups_add(groups->rows, page);

    return status < 0 ? status : clock_mono_us() >= groups->end_us;
}

/* A group's reason is a link to its jobs. */
static void write_reason(struct page *p, const struct wanted *group)
{
    html(p->h, "<a href=\"/dead?type=%u&amp;reason=%u", group->type, group->reason);
    if (*group->newer)
        html(p->h, "&amp;newer=%u", group->newer);
    if (*group->older)
        html(p->h, "&amp;older=%u", group->older);
    html(p->h, "\">%s</a>", group->reason);
}

/* of: what the page shows; NULL: a page without links. */
static void write_group(struct page *p, const json_t *row, const struct wanted *of)
{
    const char *reason = json_text_of(row, "reason");
    struct wanted group = {.search = {.count = 0}};
    bool linked = of && *reason;

    if (linked) {
        group = *of;
        group.search.count = 0;
        snprintf(group.type, sizeof group.type, "%s", json_text_of(row, "type"));
        snprintf(group.reason, sizeof group.reason, "%s", reason);
        linked = make_search(p, &group) == 0;
    }
    html(p->h, "<tr>");
    put_doc_count(p, "jobs", row, "jobs");
    put_doc_text(p, "type", row, "type");
    put_cell(p, "reason", false);
    if (linked)
        write_reason(p, &group);
    else
        html(p->h, "%s", *reason ? reason : json_object_get(row, "groups") ? "others" : "none");
    html(p->h, "</td>");
    put_doc_time(p, "first", row, "first_at");
    put_doc_time(p, "last", row, "last_at");
    if (of && p->r->actions) {
        html(p->h, "<td class=\"acts\">");
        if (linked)
            write_buttons(p, group.text);
        html(p->h, "</td>");
    }
    html(p->h, "</tr>");
}

/* Writes the groups of dead jobs, where there are at least so many. */
static int write_groups(struct page *p, const struct dead_filter *filter, size_t least,
                        const struct wanted *of)
{
    struct groups groups = {.rows = json_object(), .end_us = clock_mono_us() + LOOK_US};
    const struct dead_walk walk = {
        .w = p->w, .now_us = -1, .verb = "count", .filter = *filter, .take = take_groups, .arg = &groups};
    int status = groups.rows ? dead_walk(&walk) : WEIR_EINTERNAL;
    json_t *rows = dead_groups(groups.rows, GROUPS), *row;
    size_t i;

    if (status >= 0 && json_array_size(rows) >= least) {
        put_table(p, status > 0 ? "By reason, of the oldest" : "By reason",
                  of ? "#Jobs|Type|Reason|#First|#Last|!Actions" : "#Jobs|Type|Reason|#First|#Last");
        json_array_foreach(rows, i, row)
            write_group(p, row, of);
        put_table_end(p);
    }
    json_decref(rows);
    return status;
}

static int64_t span_of(const struct job_search *s, const char *field)
{
    const char *text = job_search_value(s, field);

    return text ? strtoll(text, NULL, 10) : 0;
}

/* The filter of dead jobs that a search is; false: it asks for more than that. */
static bool filter_of(const struct job_search *s, struct dead_filter *f)
{
    static const char *const fields[] = {"state", "type", "queue", "batch", "reason", "died<", "died>"};
    size_t known = 0;

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        known += job_search_value(s, fields[i]) != NULL;
    *f = (struct dead_filter){.type = job_search_value(s, "type"),
                              .queue = job_search_value(s, "queue"),
                              .batch = job_search_value(s, "batch"),
                              .reason = job_search_value(s, "reason"),
                              .newer_us = span_of(s, "died<"),
                              .older_us = span_of(s, "died>")};
    return known == s->count;
}

int put_dead_reasons(struct page *p, const struct job_search *s)
{
    struct dead_filter filter;

    return p->r->hide_args || !filter_of(s, &filter) ? 0 : write_groups(p, &filter, 1, NULL);
}

int put_dead_of_type(struct page *p, const char *type)
{
    struct wanted wanted = {.search = {.count = 0}};
    struct dead_filter filter;

    snprintf(wanted.type, sizeof wanted.type, "%s", type);
    if (p->r->hide_args || make_search(p, &wanted) < 0 || !filter_of(&wanted.search, &filter))
        return 0;
    return write_groups(p, &filter, 1, &wanted);
}

/* ---- Each */

static void write_acts(struct page *p, const char *id)
{
    html(p->h, "<td class=\"acts\">");
    if (*id && name_is_valid(id, strlen(id))) {
        put_button(p, &(struct button){"Retry", "job", "/api/dead/", id, "/retry", NULL, NULL});
        put_ask(p, "Remove", "dead-remove", id);
    }
    html(p->h, "</td>");
}

static void write_row(struct page *p, const json_t *job)
{
    html(p->h, "<tr>");
    put_doc_job(p, job, "dead");
    put_doc_link(p, "type", "types", job, "type");
    put_doc_secret(p, "reason", job, "reason");
    put_doc_count(p, "attempts", job, "attempts");
    put_doc_time(p, "enqueued", job, "enqueued_at");
    put_doc_time(p, "died", job, "since");
    if (p->r->actions)
        write_acts(p, json_text_of(job, "id"));
    html(p->h, "</tr>");
}

static void write_rows(struct page *p, const json_t *rows, const struct wanted *o)
{
    put_rows(p, "", "Job|Type|Reason|#Attempts|#Enqueued|#Died|!Actions", rows, write_row,
             o->search.count > 1 ? "No dead job is like that." : "No dead jobs.");
}

static int write_found(struct page *p, const struct wanted *o, const struct jobs_found *found)
{
    bool any = json_array_size(found->rows) > 0;
    struct dead_filter filter;
    int status = 0;

    if (any && filter_of(&o->search, &filter) && !*o->reason && !p->r->hide_args)
        status = write_groups(p, &filter, 2, o);
    if (any && p->r->actions) {
        html(p->h, "<div class=\"buttons\"><span class=\"pale\">All that match:</span>");
        write_buttons(p, o->text);
        html(p->h, "</div>");
    }
    write_rows(p, found->rows, o);
    put_way_on(p, &(struct way_on){found->looked_at, found->of, "/jobs?q=", o->text,
                                   "&amp;at=", json_string_value(found->next)});
    return status;
}

unsigned page_dead(struct page *p, const char *name)
{
    struct wanted wanted;
    struct jobs_found found = {.rows = NULL};
    int status = read_wanted(p, &wanted);

    (void)name;
    snprintf(p->title, sizeof p->title, "Dead jobs");
    html(p->h, "<h1>Dead jobs <small>the newest first</small></h1><p class=\"lead\">They do not run again by "
               "themselves. <code>weir dead keep</code> says how many are kept.</p>");
    write_search(p, &wanted);
    if (status == 0)
        status = jobs_look(p, &wanted.search, "", ROWS, &found);
    if (status == 0)
        status = write_found(p, &wanted, &found);
    else if (status == WEIR_EINPUT) {
        put_no_search(p);
        status = 0;
    }
    jobs_found_free(&found);
    return status < 0 ? page_failed(p, &p->w->error) : 200;
}
