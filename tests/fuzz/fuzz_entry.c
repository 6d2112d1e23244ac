#include "queue/turn/turn.h"
#include "tests/fuzz/fuzz.h"

int fuzz_entry(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size); /* hiredis ends each with a NUL too */
    struct lease lease = {0};

    if (lease_read_entry((struct span){text, size}, &lease)) {
        must_hold(lease.body.at >= text && lease.body.at + lease.body.len == text + size);
        must_hold(lease.attempts >= 0 && lease.interrupted >= 0 && lease.throttled >= 0);
        for (char letter = 'a'; letter <= 'z'; letter++) {
            struct span attr = lease_attr(lease.attrs, letter);

            must_hold(!attr.at ||
                      (attr.at >= lease.attrs.at && attr.at + attr.len <= lease.attrs.at + lease.attrs.len));
            fuzz_touch(attr.at, attr.len);
        }
    }
    free(text);
    return 0;
}
