/* Keys with rules of their own. Under virtual time. */
#include "tests/play.h"
#include "tests/scene.h"

PLAY("key_rules")

TESTS(turns_start, turns_stop)
