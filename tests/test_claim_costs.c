/* claim of jobs that cost more slots than one, under virtual time: tests/plays/claim_costs.txt. */
#include "tests/play.h"
#include "tests/scene.h"

PLAY("claim_costs")

TESTS(turns_start, turns_stop)
