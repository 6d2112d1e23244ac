#include "tests/comma.h"

#include <fcntl.h>
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/program.h"
#include "tests/test.h"

/* As localedef writes LC_NUMERIC for "de_DE", glibc 2.3 and later. */
static const unsigned char lc_numeric[] = {
    0x14, 0x11, 0x03, 0x20, 6,   0, 0,    0, 0x20, 0, 0,    0, 0x22, 0,   0,   0,   0x24, 0,
    0,    0,    0x28, 0,    0,   0, 0x2c, 0, 0,    0, 0x30, 0, 0,    0,   ',', 0,   '.',  0,
    3,    3,    0,    0,    ',', 0, 0,    0, '.',  0, 0,    0, 'U',  'T', 'F', '-', '8',  0};

void comma_begin(const char *folder)
{
    char path[512];
    int fd;

    snprintf(path, sizeof path, "%s/comma", folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/comma/LC_NUMERIC", folder);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, lc_numeric, sizeof lc_numeric), sizeof lc_numeric);
    close(fd);
    setenv("LOCPATH", folder, 1);
    setenv("LC_NUMERIC", "comma", 1);
    unsetenv("LC_ALL");
    assert_non_null(setlocale(LC_NUMERIC, ""));
    assert_string_equal(textf("%.1f", 0.5), "0,5");
    setlocale(LC_NUMERIC, "C");
}

void comma_end(void)
{
    setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
    unsetenv("LC_NUMERIC");
}
