/* The likely one of several names for a mistyped word. */
#pragma once

/* One of names (ended by NULL) that word is close to, or the beginning of; NULL: none is. */
const char *likely_word(const char *word, const char *const *names);
