/* A report in words, from its document. */
#include <string.h>

#include "view/format.h"
#include "view/output.h"
#include "view/report.h"
#include "view/text.h"

static int64_t held_by(const json_t *doc, const char *hold)
{
    return answer_int(json_object_get(doc, "holds"), hold);
}

/* Words between which a comma stands. */
struct words {
    int count;
};

static const char *comma(struct words *words)
{
    return words->count++ ? ", " : "";
}

static void put_stuck(FILE *to, const json_t *doc, struct words *words)
{
    static const char *const kinds[] = {"type", "queue", "batch"};
    const int64_t counts[] = {held_by(doc, "never") + held_by(doc, "worker") + held_by(doc, "key") +
                                  held_by(doc, "pause"),
                              held_by(doc, "queue"), held_by(doc, "batch")};
    const json_t *first = json_array_get(json_object_get(doc, "constraints"), 0);
    const char *before = "jobs of ";
    char text[PHRASE_SIZE];

    if (counts[0] + counts[1] + counts[2] == 0)
        return;
    output_to(to, "%s", comma(words));
    for (size_t i = 0; i < 3; i++) {
        if (counts[i] == 0)
            continue;
        if (counts[0] + counts[1] + counts[2] == 1)
            output_to(to, "%s%s%s%s", before, i ? kinds[i] : "", i ? " " : "", answer_text(first, kinds[i]));
        else
            output_to(to, "%s%s", before, counted(counts[i], kinds[i], text));
        before = " and of ";
    }
    output_to(to, " start only when somebody acts");
}

/* Puts "3 types wait for their limits". */
static void put_held(FILE *to, const json_t *doc, const char *hold, const char *one, const char *many,
                     struct words *words)
{
    int64_t types = held_by(doc, hold);
    char text[PHRASE_SIZE];

    if (types > 0)
        output_to(to, "%s%s %s", comma(words), counted(types, "type", text), types == 1 ? one : many);
}

static int64_t faults_of(const json_t *checks)
{
    int64_t faults = 0;

    for (size_t i = 0; i < json_array_size(checks); i++)
        faults += report_is_wrong(json_array_get(checks, i));
    return faults;
}

void report_put_verdict(FILE *to, const json_t *doc)
{
    int64_t faults = faults_of(json_object_get(doc, "checks")), running = answer_int(doc, "running");
    const char *verdict = answer_text(doc, "verdict");
    struct words words = {0};
    char text[PHRASE_SIZE];

    if (strcmp(verdict, "unknown") == 0)
        output_to(to, "%sno worker is heard", comma(&words));
    else if (faults > 0)
        output_to(to, "%s%s", comma(&words), counted(faults, "fault", text));
    put_stuck(to, doc, &words);
    put_held(to, doc, "limit", "waits for its limit", "wait for their limits", &words);
    if (held_by(doc, "span") > 0)
        output_to(to, "%sjobs wait until %s %s over", comma(&words),
                  counted(held_by(doc, "span"), "pause", text), held_by(doc, "span") == 1 ? "is" : "are");
    put_held(to, doc, "executor", "waits for an executor", "wait for executors", &words);
    put_held(to, doc, "nothing", "can start", "can start", &words);
    if (words.count == 0 && running > 0)
        output_to(to, "%s %s, nothing waits", counted(running, "job", text), running == 1 ? "runs" : "run");
    else if (words.count == 0)
        output_to(to, "nothing waits, nothing runs");
    if (answer_int(doc, "scheduled") > 0 && strcmp(verdict, "idle") == 0)
        output_to(to, ", %s scheduled", counted(answer_int(doc, "scheduled"), "job", text));
}
