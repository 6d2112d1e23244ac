/* Plays: tests of scripts as text. tests/plays/<name>.txt is a list of scenes; each is a test of an empty Redis under virtual time, and each
 * of its lines a step. What a step comes to stands behind "->", there or alone in the next line; without that it must succeed, and an `end` say nothing.
 *
 *   == a_limit_by_key                    a scene, and the name of its test
 *   each $rule  $ids                     it is played for each of these rows, whose words are two blanks apart
 *     1/1000000/1,by=key  a1 b1
 *   worker w                             begins; `leave w` hands all back; `again w2 w a1,b1` has a new id and runs these
 *   dies t a b                           a worker that runs these jobs dies, and another one takes them back
 *   says {"lease":30.0}                  what the next workers say of themselves
 *   limit slow $rule                     rules as people write them or as they are stored; none: it is removed. `set` looks at nothing that waits
 *   use t acct; unuse t acct; cost t 2; weigh acct a 3; pause acct 3s; resume acct    (each is a line)
 *   job slow a1 a2 {"key":"a"}           jobs with more members; high:slow: in another queue; slow*20: slow0 to slow19
 *   push default {"type":"t"}            a body as any client pushes it
 *   claim w 10 -> a1 b1*3@0.002s; next 0.9975s
 *   claim w 10 5                         and 5 ahead. `ask held types=t,odd`: what the next claims ask for, or say, besides; causes, times
 *   end w retry a1,b1 1s why             done, finish, retry, throttled, back, dead, cancelled, interrupted
 *   end w done a1,b1 b                   these are of batch b
 *   put t batch=b unique=k until=start in=5s tag=x a1 a2  jobs as producers enqueue them; who is refused changes nothing
 *   spend w a1 2                         what it has cost
 *   +1.5s -1h next                       (each is a line) the clock; next: to where the last claim wants the next one, no slot lost
 *   beat w -> 2; reaped 1                a heartbeat: jobs that it took back, and what else it says; pass w 31s: heartbeats for that long
 *   promote -> 1; due tick T+60s         jobs that were due, and schedules; fire: a worker fires the first of these; fires: until none is due
 *   schedule tick 'every 1m' once T+60s  is due then; and its args, and `keep`, as in schedule_add
 *   ids %lane:default/slow/a -> a2       jobs in a list; % is the prefix of all keys
 *   stats slow -> enqueued 4, pulled 2   counters of a type that are not 0
 *   token a1 -> @T+0s/default/slow/a     what a lease's token says
 *   LLEN %queue:default -> 2             any command of Redis
 *   call rate_use t use _ what me acct   any script; _ is an empty word, &a1 the token of a job
 *   why b -> parked: of 2, place 1       where a job is, what is known of it, the gates it must pass; with a client (scene_client.h)
 *   count slow; purge slow; purge; cancel a -> parked, removed   jobs of the default queue, by a client too
 *   states                               a job in each state, named by it
 *   find type:t | queue:q -> a b         the jobs that each of these searches finds; row id:a: what a list says of the only one
 *   run a -> scheduled, moved; act cancel type:t -> 2 done, 0 left; able run type:t -> 2   to how many it would be done
 *   learn k mail news -> 2 records, as of T+1s; the same   worker k of these types asks what has changed of their limits (birth=b: of data of that birth)
 *   rewrite k -> limit mail              it writes again what Redis has lost; written k: it hears that this is done
 *   coming slow 5 -> b@0.1s c:key@0.2s d@?   which jobs a limit lets start next, and when
 *   seen T+1s                            the mark that the next workers who come again were answered last
 *   calls hgetall -> 0                   how often a command ran since CONFIG RESETSTAT
 *   refused call | one | another         calls that change nothing, as expect_refused() has them
 *   remember; unchanged                  nothing in Redis has changed since
 *   unchecked                            what must always hold is no longer checked after each step that moves jobs; checked: again
 *
 * T+1.5s is a time, from when a scene begins. A claim says which jobs it leased: "*3" is what one costs, "@0.002s" when it may start; then
 * when the next look is due, and what else is to be said. 'a word with blanks', \n: a line's end, # a comment, <any> as in transcripts.
 *
 * WEIR_PLAYS=write writes what steps come to into the files, in place of what differs: read the diff. */
#pragma once

#include <stdio.h>

/* The scenes of tests/plays/<name>.txt are tests of this program, behind those in C. */
#define PLAY(name)                                                                                           \
    __attribute__((constructor)) static void play_is_here(void)                                              \
    {                                                                                                        \
        play_add(name);                                                                                      \
    }
void play_add(const char *name);

/* Between these two a scene is played: its steps (play_steps.c) are no rows, arrows or comments. */
void play_begin(void);
void play_end(void);
/* Writes what the step says, an error too, and returns 0 or that error. */
int play_step(const char *line, FILE *out);
