/* An answer: one line of a child that takes jobs by --pipe (pipe.c says what stands in it). This file knows no children. */
#pragma once

#include "queue/job/json.h"
#include "worker/way/task.h"

struct pipe_answer {
    struct span line;
    struct span id; /* of the job, as the child wrote it; decoded where it is a string; NULL: there is none */
    double number;  /* the id as a number; NAN: it is none */
    struct json_members members;
    char text[160]; /* of the id; one that does not fit is nobody's */
};

/* Reads a line, which the answer borrows. False: it is no object. *e: it cannot be read to its end; what stands before may be had all the
 * same. */
bool pipe_answer_read(struct pipe_answer *answer, struct span line, struct error *e);
void pipe_answer_free(struct pipe_answer *answer);
/* True for an id that is the number of the answer, as programs read numbers: "007" is 7. */
bool pipe_answer_means(const struct pipe_answer *answer, struct span id);
/* Finds the end that its status says. False: it says none. */
bool pipe_answer_end(const struct pipe_answer *answer, enum task_end *end);
/* Takes what else it says of a task that ends so: cost and result go into the task; *reason is to be freed. A wrong member is logged, and counts as
 * left out, as does NULL. */
void pipe_answer_take(const struct pipe_answer *answer, struct task *task, enum task_end end, double *after_s,
                      char **reason);
