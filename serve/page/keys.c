/* The keys of a limit: those with the most jobs parked, each with its state; one that is looked for; those that somebody has paused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/page/parts.h"
#include "throttle/key.h"
#include "view/format.h"
#include "view/rate_keys.h"

#define KEY_SIZE 1024
#define BAR 1000 /* the width of a bar, in its own units */

/* The rows of a page: of one limit, beside each other as long as the longest of them. */
struct keys {
    const char *limit;
    int64_t most;
};

/* True when the text, as it is shown, names that key: it was not cut, and has nothing that cannot be shown. */
static bool is_exact(const json_t *row)
{
    const char *gate = strchr(json_text_of(row, "gate"), '/'), *key = json_text_of(row, "key");
    char made[LIMIT_NAME_SIZE];

    key_make(key, strlen(key), made);
    return gate && strcmp(gate + 1, made) == 0;
}

/* key:"as the search has it", for an address. */
static void put_search(struct page *p, const char *key)
{
    char term[2 * KEY_SIZE + 8] = "key:\"", *to = term + strlen(term);

    for (; *key && to < term + sizeof term - 4; key++) {
        if (*key == '"' || *key == '\\')
            *to++ = '\\';
        *to++ = *key;
    }
    strcpy(to, "\"");
    html(p->h, "/jobs?q=%u", term);
}

static void write_key(struct page *p, const json_t *row)
{
    const char *key = json_text_of(row, "key");

    html(p->h, "<th scope=\"row\">");
    if (p->r->hide_args || !is_exact(row)) {
        put_secret(p, key);
    } else {
        html(p->h, "<a href=\"");
        put_search(p, key);
        html(p->h, "\"><bdi>%s</bdi></a>", key);
    }
    html(p->h, "</th>");
}

static void write_bar(struct page *p, int64_t parked, int64_t most)
{
    int width = most > 0 ? (int)((double)parked / (double)most * BAR) : 0;

    put_cell(p, "parked", parked == 0);
    html(p->h,
         "<span>%n<svg class=\"bar\" viewBox=\"0 0 %d 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
         "<rect class=\"track\" width=\"%d\" height=\"10\"/><rect class=\"s-parked\" width=\"%d\" "
         "height=\"10\"/></svg></span></td>",
         parked, BAR, BAR, parked > 0 && width < 4 ? 4 : width);
}

/* The rules that a key has for itself. */
static void write_own(struct page *p, const json_t *own)
{
    const json_t *rules = json_object_get(own, "rules"), *until = json_object_get(own, "until");

    if (!json_is_object(own))
        return;
    html(p->h, ", rules of its own:");
    for (size_t i = 0; i < json_array_size(rules); i++)
        html(p->h, " %s", json_text_of(json_array_get(rules, i), "rule"));
    if (json_is_number(until)) {
        html(p->h, ", until ");
        put_time(p, json_us(until), "");
    }
}

/* Adds why somebody has paused a key. */
static void put_why(struct page *p, const json_t *paused)
{
    if (!*json_text_of(paused, "reason"))
        return;
    html(p->h, ": ");
    put_secret(p, json_text_of(paused, "reason"));
}

static void write_state(struct page *p, const json_t *row)
{
    const char *state = json_text_of(row, "state");
    bool by_hand = strcmp(state, "paused") == 0;
    int64_t until_us = rate_key_until(row);

    html(p->h, "<td data-label=\"state\"><span>");
    put_state(p, state);
    if (by_hand || strcmp(state, "throttled") == 0) {
        html(p->h, by_hand ? " by hand, %s " : " by the provider, %s ",
             until_us < FORMAT_ENDLESS_US ? "ends" : "until");
        put_time(p, until_us, "");
    }
    put_why(p, json_object_get(row, "paused"));
    write_own(p, json_object_get(row, "own"));
    html(p->h, "</span></td>");
}

static void write_act(struct page *p, const struct keys *keys, const json_t *row)
{
    const char *state = json_text_of(row, "state");
    bool stopped = strcmp(state, "paused") == 0 || strcmp(state, "throttled") == 0;

    html(p->h, "<td class=\"acts\">");
    if (is_exact(row) && !p->r->hide_args)
        put_pause(p, "key", "/api/rates/", keys->limit, json_text_of(row, "key"), stopped);
    html(p->h, "</td>");
}

static void write_row(struct page *p, const struct keys *keys, const json_t *row)
{
    const json_t *next = json_object_get(row, "next_start");

    html(p->h, "<tr data-key=\"k-%s\">", p->r->hide_args ? "" : json_text_of(row, "gate"));
    write_key(p, row);
    write_bar(p, json_int_of(row, "parked"), keys->most);
    put_doc_time(p, "oldest job", row, "oldest_at");
    if (json_is_number(next) && json_us(next) < FORMAT_ENDLESS_US) {
        put_doc_time(p, "next start", row, "next_start");
    } else {
        put_cell(p, "next start", false);
        html(p->h, json_is_true(json_object_get(json_object_get(row, "own"), "closed"))
                       ? "when rules of its own are set again</td>"
                   : json_is_number(next) ? "when it is resumed</td>"
                                          : "when others end</td>");
    }
    write_state(p, row);
    if (p->r->actions)
        write_act(p, keys, row);
    html(p->h, "</tr>");
}

static void write_rows(struct page *p, const struct keys *keys, const json_t *rows)
{
    put_table(p, "", "Key|#Jobs parked|#Oldest job|#Next start|State|!Actions");
    for (size_t i = 0; i < json_array_size(rows); i++)
        write_row(p, keys, json_array_get(rows, i));
    if (json_array_size(rows) == 0)
        put_none(p, "No key has jobs in lanes.");
    put_table_end(p);
}

/* ---- What the list is */

static void write_summary(struct page *p, const json_t *doc)
{
    bool sample = json_is_true(json_object_get(doc, "sample"));

    html(p->h,
         "<dl class=\"totals\"><div><dt>jobs parked</dt><dd>%n</dd></div><div><dt>keys with "
         "jobs</dt><dd>%r%n</dd></div><div><dt>paused by hand</dt><dd>%n</dd></div></dl>",
         json_int_of(doc, "parked"), sample ? "about " : "", json_int_of(doc, "key_count"),
         json_int_of(doc, "paused_key_count"));
}

static void write_note(struct page *p, const json_t *doc)
{
    int64_t shown = (int64_t)json_array_size(json_object_get(doc, "longest"));

    html(p->h, "<p class=\"pager\"><span>");
    if (json_is_true(json_object_get(doc, "sample")))
        html(p->h, "The longest that are known, of about %n keys. ", json_int_of(doc, "key_count"));
    else if (shown < json_int_of(doc, "key_count"))
        html(p->h, "The longest of %n keys. ", json_int_of(doc, "key_count"));
    html(p->h, "Jobs that no worker has looked at yet are not counted.</span></p>");
}

static void write_find(struct page *p, const char *limit, const char *key)
{
    if (p->r->hide_args)
        return;
    html(
        p->h,
        "<form class=\"filter\" action=\"/keys/%u\"><label>Key <input type=\"search\" name=\"key\" "
        "value=\"%s\" class=\"mono\" spellcheck=\"false\" autocomplete=\"off\"></label><button>Show</button>",
        limit, key);
    if (*key)
        html(p->h, " <a href=\"/keys/%u\">all keys</a>", limit);
    html(p->h, "</form>");
}

/* ---- Those that are paused, and not among the others */

static bool is_shown(const json_t *rows, const json_t *paused)
{
    json_t *row;
    size_t i;

    json_array_foreach((json_t *)rows, i, row)
        if (strcmp(json_text_of(row, "key"), json_text_of(paused, "key")) == 0)
            return true;
    return false;
}

static void write_paused_row(struct page *p, const struct keys *keys, const json_t *row)
{
    const json_t *paused = json_object_get(row, "paused");

    html(p->h, "<tr><th scope=\"row\">");
    put_secret(p, json_text_of(row, "key"));
    put_why(p, paused);
    html(p->h, "</th>");
    put_doc_time(p, "paused", paused, "since");
    put_doc_time(p, "until", paused, "until");
    if (p->r->actions) {
        html(p->h, "<td class=\"acts\">");
        if (!p->r->hide_args)
            put_pause(p, "key", "/api/rates/", keys->limit, json_text_of(row, "key"), true);
        html(p->h, "</td>");
    }
    html(p->h, "</tr>");
}

static void write_paused(struct page *p, const struct keys *keys, const json_t *doc)
{
    const json_t *paused = json_object_get(doc, "paused_keys");
    bool any = false;
    json_t *row;
    size_t i;

    json_array_foreach((json_t *)paused, i, row) {
        if (is_shown(json_object_get(doc, "longest"), row))
            continue;
        if (!any)
            put_table(p, "Others that are paused", "Key|#Paused|#Until|!Actions");
        any = true;
        write_paused_row(p, keys, row);
    }
    if (any)
        put_table_end(p);
}

/* ---- The page */

static void write_keys(struct page *p, const json_t *doc, const char *key)
{
    const json_t *rows = json_object_get(doc, "longest");
    struct keys keys = {.limit = json_text_of(doc, "name"),
                        .most = json_int_of(json_array_get(rows, 0), "parked")};

    html(p->h,
         "<p class=\"crumbs\"><a href=\"/limits\">Limits</a> / <a href=\"/limits/%u\"><bdi>%s</bdi></a></p>"
         "<h1>Keys of <bdi>%s</bdi></h1><p class=\"lead\">each <span class=\"mono\"><bdi>%s</bdi></span> has "
         "gates of its own</p>",
         keys.limit, keys.limit, keys.limit, json_text_of(doc, "by"));
    write_summary(p, doc);
    write_find(p, keys.limit, key);
    write_rows(p, &keys, rows);
    if (!*key) {
        write_note(p, doc);
        write_paused(p, &keys, doc);
    }
}

unsigned page_keys(struct page *p, const char *name)
{
    char key[KEY_SIZE] = "";
    json_t *doc;
    int status;

    if (!p->r->hide_args)
        query_value(p->r->query, "key", key, sizeof key);
    status = view_rate_keys(p->w, name, RATE_KEYS_SHOWN, *key ? key : NULL, &doc, &p->now_us);
    if (status < 0)
        return page_failed(p, &p->w->error);
    snprintf(p->title, sizeof p->title, "Keys of %.100s", name);
    write_keys(p, doc, key);
    json_decref(doc);
    return 200;
}
