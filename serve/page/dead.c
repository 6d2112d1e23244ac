/* The dead jobs, the oldest first: why they died, and what may be done with them. */
#include "view/dead.h"

#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "queue/inspect/job_search.h"
#include "serve/page/data.h"
#include "serve/page/parts.h"
#include "view/json.h"

#define ROWS 100
#define GROUPS 10
#define LOOK_US 100000 /* so long a page looks for them */

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

static void write_rows(struct page *p, const json_t *rows, const char *type, const char *reason)
{
    static const char *const columns[] = {
        "Job", "Type", "Reason", "#Attempts", "#Enqueued", "#Died", "<span class=\"hidden\">Actions</span>"};
    json_t *row;
    size_t i;

    put_table(p, "", columns, p->r->actions ? 7 : 6);
    json_array_foreach(rows, i, row)
    {
        if (i < ROWS)
            write_row(p, row);
    }
    if (json_array_size(rows) == 0)
        html(p->h, "<tr class=\"empty\"><td colspan=\"7\">%r</td></tr>",
             *type || *reason ? "No dead job is like that." : "No dead jobs.");
    put_table_end(p);
}

static void write_search(struct page *p, const char *type, const char *reason)
{
    html(p->h,
         "<form class=\"filter\" action=\"/dead\"><label>Type <input type=\"search\" name=\"type\" "
         "value=\"%s\" "
         "autocomplete=\"off\"></label><label>Reason has <input type=\"search\" name=\"reason\" value=\"%s\" "
         "autocomplete=\"off\"></label><button>Show</button></form>",
         type, reason);
}

/* Makes a search for the jobs that are shown: "state:dead type:mail reason:\"no luck\"". */
static void make_search(const char *type, const char *reason, char search[JOB_SEARCH_SIZE])
{
    size_t len = (size_t)snprintf(search, JOB_SEARCH_SIZE, "state:dead%s%s%s", *type ? " type:" : "", type,
                                  *reason ? " reason:\"" : "");

    for (; *reason && len < JOB_SEARCH_SIZE - 4; reason++) {
        if (*reason == '"' || *reason == '\\')
            search[len++] = '\\';
        search[len++] = *reason;
        if (!reason[1])
            search[len++] = '"';
    }
    search[len] = '\0';
}

static void write_buttons(struct page *p, const char *type, const char *reason)
{
    char search[JOB_SEARCH_SIZE];

    if (!p->r->actions)
        return;
    make_search(type, p->r->hide_args ? "" : reason, search);
    html(p->h, "<div class=\"buttons\"><span class=\"pale\">All that match:</span>");
    put_ask(p, "Retry", "jobs-retry", search);
    put_ask(p, "Remove", "jobs-remove", search);
    html(p->h, "</div>");
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

/* A group's reason is a link to its jobs, with the buttons for all of them. */
static void write_group(struct page *p, const json_t *group)
{
    const char *type = json_text_of(group, "type"), *reason = json_text_of(group, "reason");

    html(p->h, "<tr>");
    put_doc_count(p, "jobs", group, "jobs");
    put_doc_text(p, "type", group, "type");
    put_cell(p, "reason", false);
    if (*reason)
        html(p->h, "<a href=\"/dead?type=%u&amp;reason=%u\">%s</a>", type, reason, reason);
    else
        html(p->h, "%r", json_object_get(group, "groups") ? "others" : "none");
    html(p->h, "</td>");
    put_doc_time(p, "first", group, "first_at");
    put_doc_time(p, "last", group, "last_at");
    html(p->h, "</tr>");
}

/* Where there are several, and reasons may be shown. */
static int write_groups(struct page *p, const char *type)
{
    static const char *const columns[] = {"#Jobs", "Type", "Reason", "#First", "#Last"};
    struct groups groups = {.rows = json_object(), .end_us = clock_mono_us() + LOOK_US};
    const struct dead_walk walk = {.w = p->w,
                                   .now_us = -1,
                                   .verb = "count",
                                   .filter = {.type = *type ? type : NULL},
                                   .take = take_groups,
                                   .arg = &groups};
    int status = groups.rows ? dead_walk(&walk) : WEIR_EINTERNAL;
    json_t *rows = dead_groups(groups.rows, GROUPS), *row;
    size_t i;

    if (status >= 0 && json_array_size(rows) > 1) {
        put_table(p, status > 0 ? "By reason, of the oldest" : "By reason", columns, 5);
        json_array_foreach(rows, i, row)
        {
            write_group(p, row);
        }
        put_table_end(p);
    }
    json_decref(rows);
    return status;
}

/* ---- Which */

struct found {
    json_t *rows;
    int64_t end_us; /* monotonic */
    bool all;
};

/* Ends with enough rows, or after a moment. */
static int take_page(const json_t *page, void *arg)
{
    struct found *found = arg;

    for (size_t i = 0; i < json_array_size(json_object_get(page, "found")); i++)
        json_array_append_new(found->rows, dead_document(page, i));
    found->all = json_array_size(found->rows) <= ROWS && clock_mono_us() < found->end_us;
    return !found->all;
}

static int find_dead(struct page *p, const char *type, const char *reason, struct found *found)
{
    const struct dead_walk walk = {
        .w = p->w,
        .now_us = -1,
        .verb = "list",
        .filter = {.type = *type ? type : NULL, .reason = *reason && !p->r->hide_args ? reason : NULL},
        .take = take_page,
        .arg = found};

    *found = (struct found){.rows = json_array(), .end_us = clock_mono_us() + LOOK_US, .all = true};
    return found->rows ? dead_walk(&walk) : WEIR_EINTERNAL;
}

unsigned page_dead(struct page *p, const char *name)
{
    char type[129], reason[512];
    struct found found;
    int status;

    (void)name;
    query_value(p->r->query, "type", type, sizeof type);
    query_value(p->r->query, "reason", reason, sizeof reason);
    status = find_dead(p, type, reason, &found);
    if (status >= 0) {
        snprintf(p->title, sizeof p->title, "Dead jobs");
        html(p->h, "<h1>Dead jobs <small>the oldest first</small></h1><p class=\"lead\">They do not run "
                   "again by themselves. "
                   "<code>weir dead keep</code> says how many are kept.</p>");
        write_search(p, type, reason);
        if (json_array_size(found.rows) > 1 && !*reason && !p->r->hide_args)
            status = write_groups(p, type);
        if (json_array_size(found.rows) > 0)
            write_buttons(p, type, reason);
        write_rows(p, found.rows, type, reason);
        if (!found.all)
            html(p->h,
                 "<p class=\"pale\">%r Narrow them by type and reason, or see <code>weir dead "
                 "list</code>.</p>",
                 json_array_size(found.rows) > ROWS ? "There are more."
                                                    : "Not all dead jobs were looked at.");
    }
    json_decref(found.rows);
    return status < 0 ? page_failed(p, &p->w->error) : 200;
}
