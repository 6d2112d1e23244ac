/* Rules that count something else than what a job costs, under virtual time: tests/plays/dimensions.txt. */
#include "tests/play.h"
#include "tests/scene.h"

PLAY("dimensions")

TESTS(turns_start, turns_stop)
