/* Is all as it should be: weir doctor --json, GET /api/doctor. */
#pragma once

#include "queue/doctor/doctor.h"
#include "view/document.h"

json_t *doctor_document(const struct doctor *d);
/* Changes nothing. */
WEIR_CHECKED int view_doctor(struct weir *w, json_t **doc);
