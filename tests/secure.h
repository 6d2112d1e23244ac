/* Certificates that a test makes by the openssl program, and a Redis that speaks TLS. */
#pragma once

#include <stdint.h>

struct server;

/* An issuer of certificates: folder/NAME.crt and NAME.key. */
void issuer_make(const char *folder, const char *name);
/* A certificate of that issuer for a day from now + shift_us on: folder/NAME.crt and NAME.key. names: such as
 * "DNS:localhost,IP:127.0.0.1". */
void certificate_make(const char *folder, const char *name, const char *issuer, const char *names,
                      int64_t shift_us);
/* Has the server take TLS on a free port of this machine, which is returned, by NAME.crt of its folder; clients may show
 * certificates of NAME's issuer. Stays after server_restart. */
int server_listen_tls(struct server *s, const char *name, const char *issuer);
/* The server shows another certificate from now on. */
void server_show(struct server *s, const char *name);
