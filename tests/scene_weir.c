#include "tests/scene_weir.h"

#include "core/clock.h"

struct outcome said;

int weir(const char *line)
{
    return program_weir(&said, turns.server.folder, turns.server.url, NULL, line);
}

void expect_said(const char *part)
{
    if (!strstr(said.out, part) && !strstr(said.err, part))
        fail_msg("not said: %s\nbut: %s%s", part, said.out, said.err);
}

void must_end(const char *line, int code, const char *part)
{
    if (weir(line) != code)
        fail_msg("%s: %d, not %d: %s%s", line, said.code, code, said.out, said.err);
    expect_said(part);
}

void must_say(const char *line, const char *part)
{
    must_end(line, 0, part);
}

void must_run(const char *line)
{
    must_say(line, "");
}

int begin_now(void **state)
{
    static pid_t held;
    int rc = scene_begin(state);

    if (held != turns.server.pid)
        server_hold_clock(&turns.server);
    held = turns.server.pid;
    turns.now_us = clock_wall_us();
    return rc;
}
