#include "core/redis/redis.h"
#include "tests/fuzz/fuzz.h"

int fuzz_address(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), shown[2000];
    struct redis_address address;
    struct error e;

    if (redis_address_parse(text, &address, &e) == 0) {
        must_hold(!!*address.host + !!*address.socket_path + !!*address.seeds == 1);
        must_hold(address.database >= 0);
        redis_address_format(&address, shown, sizeof shown);
        must_hold(strlen(shown) < sizeof shown - 1 && strstr(shown, address.socket_path) &&
                  strstr(shown, address.seeds));
    }
    free(text);
    return 0;
}
