/* A large namespace, and commands that are given there. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/large.h"

#include "bench/bench.h"
#include "core/clock.h"
#include "queue/job/stamp.h"

#define TYPES 10000
#define QUEUE_TYPES 10 /* of a queue */
#define JOBS 100       /* of a type */
#define RECORDED 400
#define AT_ONCE 100 /* types of one call that builds */

/* ---- The world. Of ten types two have limits and a lane with all their jobs but ten. */

static const char world[] =
    "local P, first, last = 'weir:{0}:', tonumber(ARGV[1]), tonumber(ARGV[2])\n"
    "local queues, jobs, recorded = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])\n"
    "local head, now, call = ARGV[6], tonumber(ARGV[7]), redis.call\n"
    "local function us(n) return string.format('%d', n) end\n"
    "local function push(key, type, from, n)\n"
    "  local list = {}\n"
    "  for i = from, from + n - 1 do\n"
    "    list[#list + 1] = head .. '{\"id\":\"' .. type .. '-' .. i .. '\",\"type\":\"' .. type ..\n"
    "      '\",\"args\":{\"user\":' .. i .. ',\"template\":\"welcome\",\"language\":\"en\"}}'\n"
    "  end\n"
    "  call('RPUSH', key, unpack(list))\n"
    "end\n"
    "local function park(queue, type)\n"
    "  call('HSET', P .. 'limits', type, 'gcra:10/3600000000/10 fixed-window:100/86400000000/100')\n"
    "  call('SET', P .. 'gate:' .. type .. '#0', us(now) .. ' 0 - - gcra:10/3600000000/10 ' .. us(now + "
    "3600000000) .. ' 0')\n"
    "  push(P .. 'lane:' .. queue .. '/' .. type .. '/', type, 10, jobs - 10)\n"
    "  call('ZADD', P .. 'ring:' .. queue .. '/' .. type, '1', '')\n"
    "  call('ZADD', P .. 'wait:' .. queue .. '/' .. type .. '#0', '1', type)\n"
    "  call('ZADD', P .. 'wake:' .. queue, us(now + 3600000000), type .. '#0')\n"
    "end\n"
    "local function slot(n)\n"
    "  local words = {'s' .. 40 * n, 'd' .. 38 * n, 'r' .. n, 'x' .. n, 't' .. 2 * n}\n"
    "  for _, letter in ipairs{'R', 'A', 'E'} do\n"
    "    for bucket = 100, 107 do words[#words + 1] = letter .. string.char(bucket) .. bucket * n end\n"
    "    words[#words + 1] = letter .. '+' .. 1000 * n\n"
    "  end\n"
    "  return table.concat(words, ' ')\n"
    "end\n"
    "local function record(key, minute, hour, all)\n"
    "  local m, h, fields = math.floor(now / 60000000), math.floor(now / 3600000000), {'all', '0 ' .. all}\n"
    "  for i = 0, 119 do fields[#fields + 1], fields[#fields + 2] = 'm' .. (m - i) % 120, us(m - i) .. ' ' "
    ".. minute end\n"
    "  for i = 0, 71 do fields[#fields + 1], fields[#fields + 2] = 'h' .. (h - i) % 72, us(h - i) .. ' ' .. "
    "hour end\n"
    "  call('HSET', P .. 'minutes:' .. key, unpack(fields))\n"
    "end\n"
    "for i = first, last do\n"
    "  local type, queue, parked = 't' .. i, 'q' .. i % queues, i % 5 == 0\n"
    "  call('SADD', P .. 'queues', queue)\n"
    "  call('HSET', P .. 'types', type, i % 50 == 0 and 'use=shared cost=2' or '')\n"
    "  push(P .. 'queue:' .. queue, type, 0, parked and 10 or jobs)\n"
    "  if parked then park(queue, type) end\n"
    "  call('HSET', P .. 'stats:' .. type, 'enqueued', 1000 + jobs, 'pulled', 1000, 'parked', parked and "
    "jobs - 10 or 0, 'done', 990,\n"
    "    'retried', 17, 'dead', 10, 'mark_us', us(now - 1000000), 'mark', 1000, 'last_us', us(now - "
    "2000000), 'last', 990)\n"
    "  if i < recorded then\n"
    "    record('t/' .. type, slot(1), slot(60), slot(4320))\n"
    "    record('l/' .. type, 'g40 n7 e3 l1', 'g2400 n420 e180 l60', 'g172800 n30240 e12960 l4320')\n"
    "  end\n"
    "end\n"
    "call('HSET', P .. 'limits', 'shared', 'gcra:100/1000000/100', 'keyed', 'gcra:10/1000000/10,by=key')\n";

static const char workers[] =
    "local P, types, now = 'weir:{0}:', {}, tonumber(ARGV[2])\n"
    "for i = 0, tonumber(ARGV[1]) - 1 do types[i + 1] = '\"t' .. i .. '\"' end\n"
    "for i = 1, 3 do\n"
    "  redis.call('ZADD', P .. 'workers', string.format('%d', now + 600000000), 'w' .. i)\n"
    "  redis.call('HSET', P .. 'active:w' .. i, '@', '{\"instance\":\"i' .. i .. "
    "'\",\"host\":\"h\",\"pid\":' .. 100 + i ..\n"
    "    ',\"executors\":100,\"lease\":30.0,\"version\":\"1\",\"queues\":[\"*\"],\"types\":[' .. "
    "table.concat(types, ',') .. ']}')\n"
    "end\n";

void large_build(void)
{
    char first[24], last[24], queues[24], jobs[24], recorded[24], now[24], head[STAMP_HEAD_LEN + 1];
    int64_t now_us = clock_wall_us();
    int types = (int)bench_size(TYPES);

    empty();
    stamp_head(now_us - 60000000, head);
    snprintf(queues, sizeof queues, "%d", types / QUEUE_TYPES);
    snprintf(jobs, sizeof jobs, "%d", JOBS);
    snprintf(recorded, sizeof recorded, "%d", RECORDED);
    snprintf(now, sizeof now, "%" PRId64, now_us);
    for (int i = 0; i < types; i += AT_ONCE) {
        snprintf(first, sizeof first, "%d", i);
        snprintf(last, sizeof last, "%d", i + AT_ONCE - 1);
        server_ask(&bench.server, "EVAL", world, "0", first, last, queues, jobs, recorded, head, now, NULL);
    }
    snprintf(last, sizeof last, "%d", types);
    server_ask(&bench.server, "EVAL", workers, "0", last, now, NULL);
}

/* ---- Processes of weir */

#define WORDS_MOST 4

pid_t large_start(const char *const *words)
{
    const char *line[WORDS_MOST + 4] = {"weir", "--redis", bench.server.url};
    pid_t parent = getpid(), pid;

    for (size_t i = 0; words[i] && i < WORDS_MOST; i++)
        line[3 + i] = words[i];
    pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) {
            dup2(null, STDOUT_FILENO);
            dup2(null, STDERR_FILENO);
            execv(bench.command, (char *const *)line);
        }
        _exit(127);
    }
    if (pid < 0)
        fail("cannot fork: %s", strerror(errno));
    return pid;
}

int large_wait(pid_t pid, double *cpu_us)
{
    struct rusage used;
    int status = -1;

    while (wait4(pid, &status, 0, &used) < 0 && errno == EINTR)
        ;
    *cpu_us = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
              (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    return status;
}
