/* What a caller of weir.h must give. A public function that answers a status begins with
 *
 *   if (GIVEN(w, PASSED(name), PASSED(rules)) < 0)
 *       return WEIR_EUSAGE;
 *
 * which names each pointer that may not be NULL. w is the object that keeps the error for weir_message(); where it is
 * NULL itself, the status is all that can be said. */
#pragma once

#include <stddef.h>

#include "core/error.h"

#define PASSED(pointer) #pointer, ((pointer) ? "" : NULL)
/* Names a list or a text of that length; an empty one may be NULL. */
#define PASSED_MANY(pointer, length) #pointer, ((pointer) || (length) == 0 ? "" : NULL)
#define GIVEN(owner, ...) given((owner) ? &(owner)->error : NULL, __func__, __VA_ARGS__, (const char *)NULL)

/* Pairs: the name of an argument, and NULL where that is NULL; a NULL name ends them. WEIR_EUSAGE, and *e names the
 * first that is NULL; also when e is NULL. */
WEIR_CHECKED int given(struct error *e, const char *function, ...);

/* The struct that a caller passed, of the size that it was compiled with: the same where that is ours, else *own, filled from it. NULL,
 * and *e says why: it sets a member that we do not know. */
#define GIVEN_STRUCT(owner, pointer, size, own)                                                              \
    given_struct(&(owner)->error, __func__, pointer, size, own, sizeof *(own))
const void *given_struct(struct error *e, const char *function, const void *theirs, size_t size, void *own,
                         size_t own_size);
/* Fills a caller's struct of that size from ours; what only the caller knows is 0. */
void give_struct(void *theirs, size_t size, const void *own, size_t own_size);
