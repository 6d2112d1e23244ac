/* delay PORT MICROSECONDS: prints the port of 127.0.0.1 by which a server at PORT is that round trip away, and serves
 * until it is killed. tests/proxy.h does it, as for every other benchmark. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/proxy.h"

int main(int argc, char **argv)
{
    char folder[] = "/tmp/weir-delay-XXXXXX";
    struct proxy *proxy;
    int64_t trip_us;

    if (argc != 3 || !mkdtemp(folder))
        return 64;
    proxy = proxy_open(folder, "", atoi(argv[1]));
    if (!proxy)
        return 1;
    trip_us = atoll(argv[2]);
    proxy_delay(proxy, PROXY_REQUESTS, trip_us / 2);
    proxy_delay(proxy, PROXY_REPLIES, trip_us / 2);
    printf("%d\n", proxy_tcp_port(proxy));
    fflush(stdout);
    for (;;)
        pause();
}
