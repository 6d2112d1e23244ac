/* Words of others, printed. */
#pragma once

#include "view/text.h"

/* Prints it, cut after about most bytes; 0: all of it. What is empty is "-". Returns whether it was cut. */
bool text_print(struct span bytes, size_t most);
