/* Workers as a person sees them: what their handlers get, and what becomes of the jobs (tests/sessions/, as tests/transcript.h says). One
 * test a file: WEIR_TEST='*pipe*' runs some. */
#include "tests/test.h"
#include "tests/transcript.h"

int main(void)
{
    return transcripts_run((const char *const[]){"tests/sessions/*.txt", NULL});
}
