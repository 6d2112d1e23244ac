/* libcurl on the worker's loop, by its multi interface: it names the sockets and the time that it waits for, and is called when one comes. It is
 * loaded when a type needs it: with it, starting the program takes three times as long. */
#pragma once

#include <curl/curl.h>
#include <ev.h>
#include <stdbool.h>

#define CURL_FUNCTIONS(F)                                                                                    \
    F(global_init)                                                                                           \
    F(getdate)                                                                                               \
    F(free)                                                                                                  \
    F(slist_append)                                                                                          \
    F(slist_free_all)                                                                                        \
    F(url)                                                                                                   \
    F(url_set)                                                                                               \
    F(url_get)                                                                                               \
    F(url_cleanup)                                                                                           \
    F(easy_init)                                                                                             \
    F(easy_setopt)                                                                                           \
    F(easy_getinfo)                                                                                          \
    F(easy_strerror)                                                                                         \
    F(easy_cleanup)                                                                                          \
    F(multi_init)                                                                                            \
    F(multi_setopt)                                                                                          \
    F(multi_assign)                                                                                          \
    F(multi_add_handle)                                                                                      \
    F(multi_remove_handle)                                                                                   \
    F(multi_socket_action)                                                                                   \
    F(multi_info_read)                                                                                       \
    F(multi_cleanup)

/* Its functions, by their names without "curl_". */
struct curl_library {
#define CURL_FUNCTION(name) __typeof__(curl_##name) *name;
    CURL_FUNCTIONS(CURL_FUNCTION)
#undef CURL_FUNCTION
};
extern struct curl_library curl;

/* Loads libcurl, once in a process. Returns why it could not be; "": it was. */
const char *curl_load(void);

struct curl_loop {
    struct ev_loop *loop;
    CURLM *multi;
    ev_timer timer;
    void (*on_completed)(void *request, CURLcode code);
};

/* Opens it, with nothing under way. on_completed gets CURLINFO_PRIVATE of a handle whose transfer has ended. false: out of memory. */
bool curl_loop_open(struct curl_loop *l, struct ev_loop *loop,
                    void (*on_completed)(void *request, CURLcode code));
/* Closes it; no handle is left in it. */
void curl_loop_close(struct curl_loop *l);
