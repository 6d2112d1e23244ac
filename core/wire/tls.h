/* tls: TLS 1.2 or newer over bytes that others send and receive: what is to be sent is encrypted into a buffer, what was
 * received is decrypted from one. It knows no socket, never waits, and keeps nothing back: all that was taken and is
 * whole is decrypted at once.
 *
 * OpenSSL is loaded at the first address of rediss://, or for an HMAC; linked, it would double the time in which a command
 * starts. This is the only file that knows it. */
#pragma once

#include <stddef.h>

#include "core/error.h"
#include "core/wire/address.h"

struct tls;

/* Makes TLS for one connection to that address, and reads the files that it names. The server's certificate must be valid, for its host or
 * server name, and its issuer known. WEIR_ECONFIG: a file cannot be used, or there is no OpenSSL. */
WEIR_CHECKED int tls_new(const struct redis_address *address, struct tls **t, struct error *e);
/* Says nothing to the peer: a child after fork() does so too. May be NULL. */
void tls_free(struct tls *t);

/* Does a step of the handshake: 1: it is done, 0: bytes of the peer are needed. WEIR_EUNREACHABLE says why it cannot be. */
WEIR_CHECKED int tls_shake(struct tls *t, struct error *e);
/* Takes bytes that came from the peer. */
WEIR_CHECKED int tls_take(struct tls *t, const char *bytes, size_t len, struct error *e);
/* Decrypts some bytes: returns how many; 0: none yet. */
WEIR_CHECKED int tls_decrypt(struct tls *t, char *out, int size, struct error *e);
/* Encrypts bytes to be sent, when none wait: at most TLS_SLICE of them; returns how many. */
#define TLS_SLICE (16 * 1024)
WEIR_CHECKED int tls_encrypt(struct tls *t, const char *bytes, size_t len, struct error *e);
/* tls_waiting() returns the encrypted bytes that wait to be sent next; tls_sent() hears that n of them were. */
size_t tls_waiting(struct tls *t, const char **bytes);
void tls_sent(struct tls *t, size_t n);
/* Says what to look for when the peer ends the connection right after the handshake. */
const char *tls_advice(const struct tls *t);

/* Computes the HMAC-SHA-256 of text by a secret. WEIR_ECONFIG: there is no OpenSSL. */
#define TLS_MAC_SIZE 32
WEIR_CHECKED int tls_hmac(const char *secret, const char *text, size_t len, unsigned char mac[TLS_MAC_SIZE],
                          struct error *e);
