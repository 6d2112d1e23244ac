/* sentinel: which Redis is the master of a name, as the Sentinels have it.
 * Protocol: SENTINEL GET-MASTER-ADDR-BY-NAME, SENTINEL MASTER: https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/ */
#pragma once

#include "core/error.h"
#include "core/redis/watch.h"

/* Sets host and port of *master, and *watch, which is the caller's (watch_free); watch may be NULL, and *watch too, when there is no
 * memory. Of several answers that of the latest failover counts (config-epoch): a Sentinel that
 * has not yet heard of it names the master before. WEIR_EUNREACHABLE: no Sentinel answers.
 * WEIR_ECONFIG: none knows the name. */
WEIR_CHECKED int sentinel_find(const struct redis_address *address, struct redis_address *master,
                               struct watch **watch, struct error *e);
