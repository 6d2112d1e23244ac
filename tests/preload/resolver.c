/* A resolver that hangs for a name, in one process: loaded by LD_PRELOAD. A name that ends with ".test" is
 * this machine, 127.0.0.1; as long as the file $WEIR_TEST_RESOLVER is there, nobody is answered who asks for
 * one. tests/test_resolver.c makes the file. */
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int is_test(const char *name)
{
    size_t len = name ? strlen(name) : 0;

    return len > 5 && strcmp(name + len - 5, ".test") == 0;
}

__attribute__((visibility("default"))) int getaddrinfo(const char *restrict name,
                                                       const char *restrict service,
                                                       const struct addrinfo *restrict hints,
                                                       struct addrinfo **restrict all)
{
    static const struct timespec rest = {.tv_nsec = 5000000};
    int (*original)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    const char *file = getenv("WEIR_TEST_RESOLVER");
    int numeric = hints && (hints->ai_flags & AI_NUMERICHOST);

    *(void **)&original = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!is_test(name) || numeric)
        return original(name, service, hints, all);
    while (file && access(file, F_OK) == 0)
        nanosleep(&rest, NULL);
    return original("127.0.0.1", service, hints, all);
}
