/* An HTTP client of few words for tests: requests as text over unix sockets or TCP. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct http_reply {
    int status;
    char head[8192]; /* the lines up to the empty one */
    char body[65536];
};

/* Where: a path, or a port of 127.0.0.1. Fails the test when it cannot connect. */
int http_open(const char *where);
bool http_listens(const char *where);
/* Sends text as it is. false: the other side has closed. */
bool http_send(int fd, const char *text, size_t len);
/* Asks for a path on a connection that stays open. */
void http_ask(int fd, const char *method, const char *path);
/* Waits until the other side has read all that was sent; over a unix socket. */
void http_await_read(int fd);
/* The next answer; without_body: to HEAD. false: the connection was closed before it. Fails the test after a
 * minute. */
bool http_receive(int fd, bool without_body, struct http_reply *reply);
/* One request on a connection of its own. */
void http_get(const char *where, const char *path, struct http_reply *reply);
/* The same with headers, each "Name: value\r\n", and a body; NULL: without one. Host: localhost, unless headers have it. */
void http_request(const char *where, const char *method, const char *path, const char *headers,
                  const char *body, struct http_reply *reply);
/* The value of a header, "" when it is not there. Static, eight at a time. */
const char *http_header(const struct http_reply *reply, const char *name);
