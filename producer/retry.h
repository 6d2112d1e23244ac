/* When a lost Redis is tried again. */
#pragma once

/* Sleeps before attempt n (0: not at all): 0.1 s doubling to 5 s, of which a random half is left out, so that
 * producers which lost the same Redis do not come back as one. */
void retry_sleep(int attempt);
