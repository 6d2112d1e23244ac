/* What pages are made of: values of the query, times, links, bars, forms. Times are microseconds since 1970. */
#pragma once

#include "serve/page/pages.h"
#include "view/waits.h"

/* Returns the HTTP status of a failure of the library. */
unsigned page_failed(struct page *p, const struct error *why);
unsigned page_not_found(struct page *p, const char *what, const char *name);

/* Finds the value of a query's name, decoded, cut at size; false: it is not there. */
bool query_value(const char *query, const char *name, char *out, size_t size);
#define CURSOR_SIZE 16384
/* Reads the cursor where a search goes on; "": there is none. WEIR_EINPUT: it is too long. */
WEIR_CHECKED int query_cursor(struct page *p, const char *name, char cursor[CURSOR_SIZE]);
/* Reads a parameter as a number; fallback where it is none, or below 0. */
int64_t query_number(const char *query, const char *name, int64_t fallback);

/* ---- Numbers and times */

/* Puts "in 8m 2s", with the time in UTC behind it; what is not above 0, or GATE_NEVER: none. */
void put_time(struct page *p, int64_t us, const char *none);
/* Puts the time of a start; what is paused until somebody resumes it starts then. */
void put_start(struct page *p, int64_t us, const char *none);
/* Puts a time of day, for "since ...". */
void put_since(struct page *p, int64_t us);
/* Puts a span: "8m 2s". */
void put_span(struct page *p, int64_t us);
/* Puts what per_second() writes. */
void put_rate(struct page *p, double rate);
/* Puts " of 20/s", the rule for all keys that a type waits for; else " of 50000/1d", its strictest in the long run; nothing: it has no rule. Returns the starts
 * a second of what it waits for; 0: it waits for no such rule. */
double put_set(struct page *p, const struct type_status *t);
/* Begins a cell of a table, of numbers; label: its heading, for narrow screens, where an empty one is left out. */
void put_cell(struct page *p, const char *label, bool empty);
/* Put whole cells. */
void put_count_cell(struct page *p, const char *label, int64_t n);
void put_time_cell(struct page *p, const char *label, int64_t us);

/* ---- Cells of a document: a member by its name. Texts of jobs (keys, reasons) are not shown with --hide-args */
void put_doc_text(struct page *p, const char *label, const json_t *doc, const char *member);
void put_doc_secret(struct page *p, const char *label, const json_t *doc, const char *member);
void put_doc_link(struct page *p, const char *label, const char *page, const json_t *doc, const char *member);
/* To the page of a job in that state, with where it stands, so that it is found there. */
void put_doc_job(struct page *p, const json_t *doc, const char *state);
void put_doc_cost(struct page *p, const char *label, const json_t *doc, const char *member);
void put_doc_count(struct page *p, const char *label, const json_t *doc, const char *member);
void put_doc_time(struct page *p, const char *label, const json_t *doc, const char *member);
void put_doc_state(struct page *p, const char *label, const json_t *doc);
/* A text of a job, or that it is hidden. */
void put_secret(struct page *p, const char *text);
/* Begins a line of a sheet, <dl class="sheet">: what is behind its name is written between the two calls. */
void put_line(struct page *p, const char *name);
void put_line_end(struct page *p);

/* ---- Links */

/* Puts a link to the page of that name: page is "types", "limits", "jobs", "batches". */
void put_link(struct page *p, const char *page, const char *name);

/* What stands as waits_for in answers: "waits for mailgun#1, 5,000 a day, until 00:00:00"; NULL: nothing. */
void put_waits(struct page *p, const json_t *waits_for);
/* Puts what a document of view/ waits for. */
void put_waits_document(struct page *p, const json_t *doc);

/* ---- States */

/* A whole has parts, each with a name and a class "s-<name>" in style.css. */
struct part {
    const char *name;
    int64_t count;
    const char *label; /* what the legend calls it */
};
/* A stacked bar, and what it shows as text for those who do not see it. */
void put_bar(struct page *p, const struct part *parts, size_t count);
/* Puts "12 waiting, 3 parked": the parts that are not 0, each with its mark. */
void put_legend(struct page *p, const struct part *parts, size_t count);
/* Puts a state by its mark and its name. */
void put_state(struct page *p, const char *state);

/* ---- Tables, notes */

/* Begins a section with a heading, and a table of columns, "Job|#Died|!Actions": '#' has numbers, '!' is there with p->r->actions alone, and its
 * heading only heard. Ended by put_table_end. */
void put_table(struct page *p, const char *heading, const char *columns);
void put_table_end(struct page *p);
/* Puts what stands in a table without rows. */
void put_none(struct page *p, const char *none);
/* Puts a table of which each row is one of rows; `none` stands in it where there are none. */
void put_rows(struct page *p, const char *heading, const char *columns, const struct json_t *rows,
              void (*put_row)(struct page *p, const struct json_t *row), const char *none);

/* How far a search has looked, and the link by which it goes on. */
struct way_on {
    int64_t looked_at, of;
    const char *before, *name, *after; /* the address, but for the cursor; name of any bytes */
    const char *cursor;                /* NULL: all was looked at */
};
void put_way_on(struct page *p, const struct way_on *on);

/* True when a line of the log of changes names that limit. */
bool change_names(const char *what, const char *limit);

/* ---- Forms: only where p->r->actions */

/* A button that posts to the address before + name + after, with the field `back`, which is this page. */
struct button {
    const char *label, *kind; /* "Pause", "queue": who only hears it is told of which kind and name */
    const char *before, *name, *after; /* name of any bytes */
    const char *field, *value; /* a field more; NULL: none. The key of a button for one is its value */
};
void put_button(struct page *p, const struct button *button);
/* Puts Resume, or Pause with fields for how long and why; key: that one of a limit, else NULL. */
void put_pause(struct page *p, const char *kind, const char *before, const char *name, const char *key,
               bool paused);
/* Puts a link to the page that asks before it destroys: "purge" of a thing. */
void put_ask(struct page *p, const char *label, const char *what, const char *name);
/* True when an action destroys anything. Others are asked about as they concern many jobs. */
bool ask_destroys(const char *what);

/* Puts a form that finds rows by a part of their names, in the query's "like"; where there are few rows, none. */
void put_filter(struct page *p, const char *path, const char *label, const char *like, size_t rows);
/* Links to the pages before and behind the one from which `from` of all is shown; name and value: what else stands in the
 * address. */
void put_pager(struct page *p, const char *name, const char *value, int64_t from, int64_t shown, int64_t all);
