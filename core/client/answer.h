/* Answers of administrative scripts: each is one JSON document, which answer() of core/script/base.lua writes.
 *
 * A string holds the bytes that stand in Redis, UTF-8 or not; it is printed with output() or text_word(). A
 * number may arrive as text: Lua's JSON keeps 14 digits, and a time has 16. A member that Lua knows as nil is
 * absent; an empty table is {}, whether it was meant as a list or not. Jansson takes both: an absent member is
 * NULL to its functions, and an empty object has no element and no member. Strings that stand beside the JSON,
 * as they may be large, are its member "raw", a list. */
#pragma once

#include <jansson.h>

#include "core/client/client.h"

/* Sends a request of that script, as client_call does, and frees it. *answer is the caller's (json_decref), NULL
 * after a failure, which is in w->error. */
WEIR_CHECKED int client_ask(struct weir *w, const char *script, struct args *a, json_t **answer);

/* Asks a script whose arguments are those words, ended by NULL. now_us < 0: Redis's time. */
WEIR_CHECKED int client_ask_words(struct weir *w, int64_t now_us, const char *script,
                                  const char *const *words, json_t **answer);
#define ASK_WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Do client_ask() in two steps, for a script that changes nothing: Redis works while the caller does something else. What was sent (true) is
 * under way: w makes no call of another kind before all answers are taken, which come in the order of the calls. false: it was lost, and
 * can be asked again by client_ask, whose connection is then a new one. */
WEIR_CHECKED bool client_ask_ahead(struct weir *w, struct args *a);
WEIR_CHECKED bool client_take_ahead(struct weir *w, const char *script, json_t **answer);

/* Asks several calls of a script that changes nothing, in one round trip, and frees them. answers[i] is the caller's, NULL where it was lost or
 * refused: it can be asked again by client_ask, which says why. Redis serves nobody else between them: together they are to be short. */
void client_ask_each(struct weir *w, const char *script, struct args *calls, size_t count, json_t **answers);

/* True when one of these calls has just waited in vain for Redis: w->error says so, and who asks again waits as long again. */
bool client_is_silent(const struct weir *w);

/* Reads the document in a reply. Error replies become their errors; anything but a JSON object is WEIR_EINTERNAL. */
WEIR_CHECKED int answer_read(const struct redisReply *r, const char *script, json_t **answer,
                             struct error *e);
/* Parses a JSON array or object whose strings hold any bytes. NULL: it is none, or there is no memory. */
json_t *answer_parse(const char *text, size_t len);
/* A member that is a whole number, or says one; 0 or fallback when it does not, or is beyond 2^53. */
int64_t answer_int(const json_t *object, const char *member);
int64_t answer_int_or(const json_t *object, const char *member, int64_t fallback);
int64_t answer_int_at(const json_t *array, size_t i);
/* A member that is a string, up to its first NUL; "" when it is none. The document's. */
const char *answer_text(const json_t *object, const char *member);
