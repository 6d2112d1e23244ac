/* What has happened to a type or at a limit: GET /api/history. */
#pragma once

#include "queue/history/history.h"
#include "view/document.h"

/* Reads the history as history_ask() answers it, with times in seconds. */
WEIR_CHECKED int view_history(struct weir *w, const struct history_call *call, json_t **doc);
