#include "serve/page/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "serve/page/pages.h"
#include "serve/page/parts.h"

/* A path that ends with "/" stands for all names behind it; nav: the entry that its pages mark. */
static const struct route {
    const char *path, *nav;
    unsigned (*write)(struct page *p, const char *name);
} routes[] = {
    {"/", "/", page_overview},
    {"/types/", "/", page_type},
    {"/limits", "/limits", page_limits},
    {"/limits/", "/limits", page_limit},
    {"/keys/", "/limits", page_keys},
    {"/jobs", "/jobs", page_jobs},
    {"/jobs/", "/jobs", page_job},
    {"/batches", "/batches", page_batches},
    {"/batches/", "/batches", page_batch},
    {"/schedules", "/schedules", page_schedules},
    {"/schedules/", "/schedules", page_schedule},
    {"/workers", "/workers", page_workers},
    {"/dead", "/dead", page_dead},
    {"/redis", "/redis", page_redis},
    {"/log", "/log", page_log},
    {"/ask", "", page_ask},
};

static const struct {
    const char *path, *name;
} entries[] = {
    {"/", "Overview"},       {"/limits", "Limits"},       {"/jobs", "Jobs"},
    {"/batches", "Batches"}, {"/schedules", "Schedules"}, {"/workers", "Workers"},
    {"/dead", "Dead"},       {"/redis", "Redis"},         {"/log", "Log"},
};

#define MOMENT_US 1000000 /* what is used for longer says when it was read */

static const struct route *route_of(const char *path)
{
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        size_t len = strlen(routes[i].path);
        bool names = len > 1 && routes[i].path[len - 1] == '/';

        if (strncmp(path, routes[i].path, len) == 0 && (names ? path[len] != '\0' : path[len] == '\0'))
            return &routes[i];
    }
    return NULL;
}

bool page_is(const char *path)
{
    return route_of(path) != NULL;
}

/* ---- The frame */

static void write_nav(struct html *h, const char *marked)
{
    html(h, "<nav aria-label=\"Pages\"><ul>");
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        html(h, "<li><a href=\"%r\"%r>%r</a></li>", entries[i].path,
             strcmp(marked, entries[i].path) == 0 ? " aria-current=\"page\"" : "", entries[i].name);
    html(h, "</ul></nav>");
}

static void write_head(struct html *h, const struct page *p)
{
    html(h,
         "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s · weir</title>"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
         "<meta name=\"color-scheme\" content=\"light dark\"><meta name=\"referrer\" content=\"same-origin\">"
         "<link rel=\"icon\" href=\"/assets/icon.svg\" type=\"image/svg+xml\">"
         "<link rel=\"stylesheet\" href=\"/assets/style.css\"><script src=\"/assets/page.js\" "
         "defer></script>%r</head>"
         "<body><a class=\"skip\" href=\"#main\">Skip to content</a><header>"
         "<a class=\"brand\" href=\"/\"><svg viewBox=\"0 0 24 16\" aria-hidden=\"true\"><path d=\"M1 "
         "4h12v8h10\"/>"
         "<path d=\"M1 9h7v5h15\"/></svg>weir</a>",
         p->title, p->away ? "<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>" : "");
    write_nav(h, p->nav);
    html(
        h,
        "<form class=\"find\" action=\"/jobs\" role=\"search\"><label class=\"hidden\" for=\"find\">Find "
        "jobs</label>"
        "<input id=\"find\" type=\"search\" name=\"q\" placeholder=\"Find jobs: type:mail state:parked\" "
        "autocomplete=\"off\" spellcheck=\"false\"></form></header>"
        "<p class=\"note wrong away\" id=\"away\" hidden><b role=\"alert\"></b> <span>What is shown was read "
        "<time></time>.</span></p>");
}

static const char *heading_of(unsigned status)
{
    return status == 404                                     ? "Not found"
           : status == 401 || status == 403 || status == 405 ? "Not allowed"
                                                             : "This cannot be shown";
}

static void write_failure(struct html *h, const char *heading, unsigned status, const char *why)
{
    html(h, "<h1>%r</h1><p class=\"note wrong\"><b>%r</b> %s</p>", heading,
         status == 404 ? "Missing:" : "Wrong:", why);
    if (status == 404)
        html(h, "<p>There are the <a href=\"/\">overview</a> with all types, the <a "
                "href=\"/limits\">limits</a>, and "
                "a search for <a href=\"/jobs\">jobs</a>.</p>");
}

static void write_main(struct html *h, const struct page *p, const struct html *inside)
{
    char problem[512];

    html(h, "<main id=\"main\" tabindex=\"-1\" data-now=\"%i\"%r>", p->now_us / 1000,
         p->away   ? " data-away"
         : p->gone ? " data-gone"
                   : "");
    if (query_value(p->r->query, "problem", problem, sizeof problem))
        html(h, "<p class=\"note wrong\" role=\"alert\"><b>Not done:</b> %s</p>", problem);
    html(h, "%r</main>", inside->out.len ? inside->out.at : "");
}

static void write_foot(struct html *h)
{
    html(h, "<footer><span id=\"live\" role=\"status\"></span><span>Times are relative; hover for "
            "UTC.</span></footer></body></html>\n");
}

static void write_all(struct html *h, const struct page *p, const struct html *inside)
{
    write_head(h, p);
    write_main(h, p, inside);
    write_foot(h);
}

/* Ends the text with a NUL, which is not part of it. */
static void terminate(struct html *h)
{
    struct error ignored;

    h->failed = h->failed || text_add(&h->out, "", 1, &ignored) < 0;
    h->out.len -= !h->failed;
}

static unsigned write_inside(struct page *p, const struct route *route)
{
    const char *name = route ? p->r->path + strlen(route->path) : p->r->path;
    unsigned status = route ? route->write(p, name) : page_not_found(p, "page", name);

    if (status != 200 && p->e->status) {
        p->h->out.len = 0;
        write_failure(p->h, status == 503 ? "Redis does not answer" : heading_of(status), status, p->e->text);
    } else if (p->reading.keep_us > MOMENT_US) {
        html(p->h, "<p class=\"pale\">Jobs and limits as of ");
        put_since(p, p->reading.status->now_us);
        html(p->h, ".</p>");
    }
    terminate(p->h);
    return status;
}

unsigned page_render(struct weir *w, const struct page_request *r, struct text *out, struct error *e)
{
    const struct route *route = route_of(r->path);
    struct page_cache *own = r->cache ? NULL : page_cache_new();
    struct html inside = {.failed = !r->cache && !own}, whole = {.failed = false};
    struct page p = {.w = w,
                     .r = r,
                     .h = &inside,
                     .e = e,
                     .nav = route ? route->nav : "",
                     .title = "weir",
                     .now_us = clock_wall_us(),
                     .cache = r->cache ? r->cache : own};
    unsigned status;

    e->status = 0;
    status = inside.failed ? 500 : write_inside(&p, route);
    p.away = status == 503;
    p.gone = status == 404;
    write_all(&whole, &p, &inside);
    if (inside.failed || whole.failed || text_add(out, whole.out.at, whole.out.len, e) < 0) {
        error_set(e, WEIR_EINTERNAL, "page %.100s: out of memory", r->path);
        status = 500;
    }
    html_free(&inside);
    html_free(&whole);
    page_cache_free(own);
    return status;
}

int page_refuse(unsigned status, const char *why, struct text *out, struct error *e)
{
    struct page p = {.nav = ""};
    struct html h = {.failed = false};

    snprintf(p.title, sizeof p.title, "%s", heading_of(status));
    write_head(&h, &p);
    html(&h, "<main id=\"main\" tabindex=\"-1\">");
    write_failure(&h, heading_of(status), status, why);
    html(&h, "</main>");
    write_foot(&h);
    if (h.failed || text_add(out, h.out.at, h.out.len, e) < 0)
        error_no_memory(e, "page");
    html_free(&h);
    return e->status;
}

extern const struct page_asset page_assets[];

const struct page_asset *page_asset(const char *name)
{
    for (const struct page_asset *asset = page_assets; asset->name; asset++)
        if (strcmp(asset->name, name) == 0)
            return asset;
    return NULL;
}
