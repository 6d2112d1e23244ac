/* Handlers for weir worker --load weekly_summary_handler.so, written against weir.h alone:
 *
 *   weekly_summary {"business_id":..,"name":..,"week":..,"last_week":{..}}
 *       reads FOLDER/transactions/<business_id>.ndjson, writes the summary to FOLDER/mail/<business_id>.eml
 *   receipt {"business_id":..,"amount_cents":..}
 *       adds a line to FOLDER/receipts.ndjson
 *
 * FOLDER is $WEEKLY_SUMMARY_DIR, else ".". A job may run twice (a worker that dies after the work and before
 * it could say so), so a summary is written beside its place and renamed: there is one whole file however
 * often it is written. What can never succeed goes to the dead jobs; what may, such as a full disk, is tried
 * again. */
#define _DEFAULT_SOURCE /* POSIX, under -std=c11 too */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "weir.h"

#define PATH_SIZE 4096
#define MONEY_SIZE 40
#define MOST_MERCHANTS 256
#define TOP_MERCHANTS 5
#define REASON_SIZE 200

struct money_total {
    int64_t spent_cents, refunded_cents;
    int transactions;
};

struct merchant_total {
    char name[64];
    int64_t cents; /* refunds subtracted */
    int purchases;
};

struct summary {
    const char *business_id, *name, *week; /* of the job's args */
    struct money_total last_week, this_week;
    struct merchant_total merchants[MOST_MERCHANTS];
    int merchant_count;
};

static const char *folder(void)
{
    const char *set = getenv("WEEKLY_SUMMARY_DIR");

    return set && *set ? set : ".";
}

/* "-1,234.56" */
static const char *money(int64_t cents, char out[MONEY_SIZE])
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%lld", llabs(cents) / 100);
    char *at = out;

    if (cents < 0)
        *at++ = '-';
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    sprintf(at, ".%02d", (int)(llabs(cents) % 100));
    return out;
}

/* ---- Reading */

/* Checks the id, which becomes part of a file's name. */
static bool is_business_id(const char *id)
{
    size_t len = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

    return len > 0 && len <= 32 && !id[len];
}

/* Reads the args. The strings stay args's. */
static bool read_args(json_t *args, struct summary *s)
{
    json_int_t spent, refunded;

    if (json_unpack(args, "{s:s, s:s, s:s, s:{s:I, s:I, s:i}}", "business_id", &s->business_id, "name",
                    &s->name, "week", &s->week, "last_week", "spent_cents", &spent, "refunded_cents",
                    &refunded, "transactions", &s->last_week.transactions) < 0)
        return false;
    s->last_week.spent_cents = spent;
    s->last_week.refunded_cents = refunded;
    return is_business_id(s->business_id) && !strpbrk(s->name, "\r\n") && !strpbrk(s->week, "\r\n");
}

static struct merchant_total *merchant_named(struct summary *s, const char *name)
{
    struct merchant_total *m = s->merchants;

    while (m < s->merchants + s->merchant_count && strcmp(m->name, name) != 0)
        m++;
    if (m == s->merchants + s->merchant_count) {
        if (s->merchant_count == MOST_MERCHANTS || strlen(name) >= sizeof m->name)
            return NULL;
        s->merchant_count++;
        strcpy(m->name, name);
    }
    return m;
}

static bool add_transaction(struct summary *s, const char *line)
{
    json_t *transaction = json_loads(line, 0, NULL);
    struct merchant_total *m = NULL;
    const char *merchant;
    json_int_t cents;

    if (json_unpack(transaction, "{s:s, s:I}", "merchant", &merchant, "amount_cents", &cents) == 0)
        m = merchant_named(s, merchant);
    if (m) {
        s->this_week.transactions++;
        *(cents < 0 ? &s->this_week.refunded_cents : &s->this_week.spent_cents) += llabs(cents);
        m->cents += cents;
        m->purchases += cents >= 0;
    }
    json_decref(transaction);
    return m;
}

/* On failure reason says why; returns false. */
static bool read_transactions(struct summary *s, char reason[REASON_SIZE])
{
    char path[PATH_SIZE], line[512];
    FILE *file;
    bool good = true;

    snprintf(path, sizeof path, "%s/transactions/%s.ndjson", folder(), s->business_id);
    file = fopen(path, "r");
    if (!file) {
        snprintf(reason, REASON_SIZE, "transactions of %s: %s", s->business_id, strerror(errno));
        return false;
    }
    while (good && fgets(line, sizeof line, file))
        good = add_transaction(s, line);
    if (!good)
        snprintf(reason, REASON_SIZE, "transactions of %s: not readable after %d", s->business_id,
                 s->this_week.transactions);
    fclose(file);
    return good;
}

/* ---- Writing */

static int by_cents(const void *a, const void *b)
{
    const struct merchant_total *x = a, *y = b;

    if (x->cents != y->cents)
        return x->cents < y->cents ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void write_headers(FILE *mail, const struct summary *s)
{
    char date[64], spent[MONEY_SIZE];
    time_t now = time(NULL);
    struct tm utc;

    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S +0000", gmtime_r(&now, &utc));
    fprintf(mail,
            "From: Weekly Summary <summary@example.com>\n"
            "To: \"%s\" <%s@example.com>\n"
            "Subject: Your week %s: %s spent\n"
            "Date: %s\n"
            "Message-ID: <%s.%s@example.com>\n"
            "MIME-Version: 1.0\n"
            "Content-Type: text/plain; charset=utf-8\n\n",
            s->name, s->business_id, s->week, money(s->this_week.spent_cents, spent), date, s->week,
            s->business_id);
}

static void write_totals(FILE *mail, const struct summary *s)
{
    int64_t total = s->this_week.spent_cents - s->this_week.refunded_cents;
    int64_t before = s->last_week.spent_cents - s->last_week.refunded_cents;
    char text[MONEY_SIZE];

    fprintf(mail, "Hello %s,\n\nthis was your week %s:\n\n", s->name, s->week);
    fprintf(mail, "%-16s %16s\n", "Spent", money(s->this_week.spent_cents, text));
    fprintf(mail, "%-16s %16s\n", "Refunded", money(s->this_week.refunded_cents, text));
    fprintf(mail, "%-16s %16s\n", "Total", money(total, text));
    fprintf(mail, "%-16s %16d\n", "Transactions", s->this_week.transactions);
    fprintf(mail, "%-16s %16s\n", "Last week", money(before, text));
    if (before > 0)
        fprintf(mail, "%-16s %+15.1f%%\n", "Change", 100.0 * (double)(total - before) / (double)before);
}

static void write_merchants(FILE *mail, struct summary *s)
{
    qsort(s->merchants, (size_t)s->merchant_count, sizeof *s->merchants, by_cents);
    fprintf(mail, "\nTop merchants\n");
    for (int i = 0; i < s->merchant_count && i < TOP_MERCHANTS; i++) {
        char text[MONEY_SIZE];

        fprintf(mail, "%d. %-24s %12s  in %d\n", i + 1, s->merchants[i].name,
                money(s->merchants[i].cents, text), s->merchants[i].purchases);
    }
}

/* The job's id keeps two runs of two jobs apart, and another attempt only writes the same again. */
static bool write_mail(struct weir_job *job, struct summary *s)
{
    char path[PATH_SIZE], beside[PATH_SIZE];
    FILE *mail;
    bool good;

    snprintf(path, sizeof path, "%s/mail/%s.eml", folder(), s->business_id);
    snprintf(beside, sizeof beside, "%s/mail/.%s.%d.%d", folder(), weir_job_id(job), weir_job_attempt(job),
             (int)getpid());
    mail = fopen(beside, "w");
    if (!mail)
        return false;
    write_headers(mail, s);
    write_totals(mail, s);
    write_merchants(mail, s);
    good = fflush(mail) == 0 && !ferror(mail) && fsync(fileno(mail)) == 0;
    good = fclose(mail) == 0 && good && rename(beside, path) == 0;
    if (!good)
        unlink(beside);
    return good;
}

static int weekly_summary(struct weir_job *job, void *arg)
{
    json_t *args = json_loads(weir_job_args(job), 0, NULL);
    struct summary *s = calloc(1, sizeof *s);
    char reason[REASON_SIZE];
    int result = WEIR_DONE;

    (void)arg;
    if (!s)
        result = weir_job_retry(job, -1, "out of memory");
    else if (!read_args(args, s))
        result = weir_job_dead(job, "args: not a business_id, name, week and last_week");
    else if (!read_transactions(s, reason))
        result = weir_job_retry(job, -1, "%s", reason);
    else if (!write_mail(job, s))
        result = weir_job_retry(job, -1, "mail of %s: %s", s->business_id, strerror(errno));
    free(s);
    json_decref(args);
    return result;
}

/* ---- Receipts */

/* One write of one line at the end of the file: lines of several threads and processes do not mix. */
static bool append_line(const char *line, size_t len)
{
    char path[PATH_SIZE];
    bool good;
    int fd;

    snprintf(path, sizeof path, "%s/receipts.ndjson", folder());
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    good = write(fd, line, len) == (ssize_t)len;
    return close(fd) == 0 && good;
}

static int receipt(struct weir_job *job, void *arg)
{
    json_t *args = json_loads(weir_job_args(job), 0, NULL);
    const char *business_id;
    json_int_t cents;
    char line[512];
    int len = 0;

    (void)arg;
    if (json_unpack(args, "{s:s, s:I}", "business_id", &business_id, "amount_cents", &cents) == 0 &&
        is_business_id(business_id))
        len = snprintf(line, sizeof line,
                       "{\"id\":\"%s\",\"business_id\":\"%s\",\"amount_cents\":%" PRId64 "}\n",
                       weir_job_id(job), business_id, (int64_t)cents);
    json_decref(args);
    if (!len)
        return weir_job_dead(job, "args: not a business_id and amount_cents");
    if (!append_line(line, (size_t)len))
        return weir_job_retry(job, -1, "receipts: %s", strerror(errno));
    return WEIR_DONE;
}

WEIR_API int weir_register(struct weir_worker *worker);

int weir_register(struct weir_worker *worker)
{
    int status = weir_worker_handle(worker, "weekly_summary", weekly_summary, NULL);

    return status < 0 ? status : weir_worker_handle(worker, "receipt", receipt, NULL);
}
