/* A claim that settles; tests/plays/turn.txt. */
#include "tests/play.h"
#include "tests/scene.h"

PLAY("turn")

TESTS(turns_start, turns_stop)
