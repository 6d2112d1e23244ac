/* libcurl on the loop: loading it, and doing what it asks for. */
#include "worker/way/curl_loop.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct curl_library curl;

static char missing[256]; /* why it could not be loaded; "": it was */

static void load(void)
{
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

#define CURL_FUNCTION(name)                                                                                  \
    library = library && (*(void **)&curl.name = dlsym(library, "curl_" #name)) ? library : NULL;
    CURL_FUNCTIONS(CURL_FUNCTION)
#undef CURL_FUNCTION
    if (!library || curl.global_init(CURL_GLOBAL_DEFAULT) != 0)
        snprintf(missing, sizeof missing, "%s", library ? "it does not start" : dlerror());
}

const char *curl_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    return missing;
}

struct watcher {
    ev_io io;
    struct curl_loop *owner;
};

/* ---- What it waits for */

static void act(struct curl_loop *l, curl_socket_t fd, int events)
{
    int running, left;
    CURLMsg *message;

    curl.multi_socket_action(l->multi, fd, events, &running);
    while ((message = curl.multi_info_read(l->multi, &left))) {
        void *request = NULL;

        curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
        l->on_completed(request, message->data.result);
    }
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static void on_socket(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    act(((struct watcher *)io)->owner, io->fd,
        (events & EV_READ ? CURL_CSELECT_IN : 0) | (events & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

static int want_time(CURLM *multi, long timeout_ms, void *arg)
{
    struct curl_loop *l = arg;
    struct ev_loop *loop = l->loop;

    (void)multi;
    ev_timer_stop(loop, &l->timer);
    if (timeout_ms < 0)
        return 0;
    ev_now_update(loop);
    ev_timer_set(&l->timer, (double)timeout_ms / 1e3, 0);
    ev_timer_start(loop, &l->timer);
    return 0;
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *of_socket)
{
    struct curl_loop *l = arg;
    struct ev_loop *loop = l->loop;
    struct watcher *watcher = of_socket;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watcher)
            ev_io_stop(loop, &watcher->io);
        free(watcher);
        return 0;
    }
    if (!watcher) {
        if (!(watcher = malloc(sizeof *watcher)))
            return -1;
        watcher->owner = l;
        ev_io_init(&watcher->io, on_socket, fd, 0);
        curl.multi_assign(l->multi, fd, watcher);
    }
    ev_io_stop(loop, &watcher->io);
    ev_io_set(&watcher->io, fd, (what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0));
    ev_io_start(loop, &watcher->io);
    return 0;
}

bool curl_loop_open(struct curl_loop *l, struct ev_loop *loop,
                    void (*on_completed)(void *request, CURLcode code))
{
    l->loop = loop;
    l->on_completed = on_completed;
    ev_timer_init(&l->timer, on_timer, 0, 0);
    l->timer.data = l;
    if (!(l->multi = curl.multi_init()))
        return false;
    curl.multi_setopt(l->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
    curl.multi_setopt(l->multi, CURLMOPT_SOCKETDATA, l);
    curl.multi_setopt(l->multi, CURLMOPT_TIMERFUNCTION, want_time);
    curl.multi_setopt(l->multi, CURLMOPT_TIMERDATA, l);
    return true;
}

void curl_loop_close(struct curl_loop *l)
{
    curl.multi_cleanup(l->multi);
    l->multi = NULL;
    ev_timer_stop(l->loop, &l->timer);
}
