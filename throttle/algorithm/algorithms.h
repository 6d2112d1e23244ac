/* The table of all algorithms. */
#pragma once

#include "throttle/algorithm/algorithm.h"

const struct algorithm_ops *algorithm_of(enum algorithm algorithm);
/* Finds an algorithm by its name; false: there is none. */
bool algorithm_find(const char *name, enum algorithm *algorithm);
