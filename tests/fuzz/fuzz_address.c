#include "core/redis/redis.h"
#include "tests/fuzz/fuzz.h"

int fuzz_address(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), shown[400];
    struct redis_address address;
    struct error e;

    if (redis_address_parse(text, &address, &e) == 0) {
        must_hold(!*address.host != !*address.socket_path);
        must_hold(address.database >= 0);
        redis_address_format(&address, shown, sizeof shown);
        must_hold(strlen(shown) < sizeof shown - 1 && (*address.host || strstr(shown, address.socket_path)));
    }
    free(text);
    return 0;
}
