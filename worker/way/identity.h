/* identity: what tells an endpoint who calls it: headers of a file, and a signature by the secrets of another. */
#pragma once

#include "core/error.h"
#include "queue/job/job.h"

#define SIGNATURE_SIZE 192

struct identity {
    char headers[8][2048], secrets[2][257];
    int header_count, secret_count;
};

/* Reads the files, as credential_path() finds them; either may be NULL. WEIR_ECONFIG: one cannot be read, everybody can read it, a line is
 * wrong, there is no OpenSSL. No error shows what a line holds. */
WEIR_CHECKED int identity_read(struct identity *i, const char *headers, const char *secrets, struct error *e);
/* Writes "t=SECONDS,v1=HEX", with a v1 for each secret: the HMAC-SHA-256 of "SECONDS.body"; the body is front and rest. */
WEIR_CHECKED int identity_sign(const struct identity *i, int64_t at_s, struct span front, struct span rest,
                               char signature[SIGNATURE_SIZE], struct error *e);
