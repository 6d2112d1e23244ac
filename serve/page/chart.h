/* Charts of what was recorded (queue/history/history.h). Each says in words what it shows too. */
#ifndef SERVE_PAGE_CHART_H
#define SERVE_PAGE_CHART_H

#include "serve/page/pages.h"
#include "view/document.h"

/* Puts a small line of the starts in each slot of a type or limit, against `most` a second (0: none). slots: how many there are from
 * the left edge to now. */
void put_spark(struct page *p, const json_t *history, int slots, double most);
/* Ends in each slot, at most so many, as stacked columns by outcome, with a line of what the limit lets through where that is not far above
 * them. */
void put_outcomes(struct page *p, const json_t *history, int most_slots, double most);
/* Puts the outcomes of several types together; histories: of the same slots, by hours, NULL for those that are not known. */
void put_outcomes_of_all(struct page *p, json_t *const *histories, size_t count, int most_slots);
/* Puts a histogram of the lists of [upper ms, n] under that path of all slots: "run", or "wait" with all that held. */
void put_histogram(struct page *p, const json_t *history, const char *member);
/* Puts how many jobs waited how long for what: a bar and the medians. */
void put_wait_split(struct page *p, const json_t *history);

#endif
