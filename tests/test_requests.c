/* weir serve as browsers and programs see it (tests/requests/, as tests/transcript.h says): each request, and its answer. One test a file:
 * WEIR_TEST='*takes*' runs some. */
#include "tests/test.h"
#include "tests/transcript.h"

int main(void)
{
    return transcripts_run((const char *const[]){"tests/requests/*.txt", NULL});
}
