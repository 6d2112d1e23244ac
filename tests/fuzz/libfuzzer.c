/* The entry of libFuzzer: one program of each target, built with -DTARGET=fuzz_job. */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return TARGET(data, size);
}
