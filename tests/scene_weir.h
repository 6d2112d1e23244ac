/* What weir says on a scene's Redis (scene.h): the commands, from outside. */
#pragma once

#include "tests/program.h"
#include "tests/scene.h"

extern struct outcome said; /* by the last one */

/* Runs it with the words of a line, as program_weir() has them, in the server's folder. The exit code. */
int weir(const char *line);
/* A part of what was said. */
void expect_said(const char *part);
/* The same of a line that ends with that code. */
void must_end(const char *line, int code, const char *part);
/* With 0; whatever is said. */
void must_say(const char *line, const char *part);
void must_run(const char *line);

/* Setup of each test: as scene_begin(), at the time of the machine, which commands go by. */
int begin_now(void **state);
