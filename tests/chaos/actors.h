/* The processes of a chaos run that use Weir's library: the test program started again.
 *
 *   worker         runs jobs, by handlers of all kinds; $CHAOS_... say which
 *   producer N     every second step of the plan, from where the notes of the one before it end
 *   operator       what people do: cancels and pauses
 *
 * Producers and the operator note what was answered in the file "answers", one write to its end a line:
 *
 *     in <step> <us>            all jobs of this step are in
 *     held <id> <holder>        not enqueued: its unique key is held
 *     maybe <step>              some of its jobs may be in, unless "in" follows; it is not tried again
 *     done <step>               the step is over
 *     cancel <id> <result> <from us> <to us>    asked and answered; result: of cancel_job, or "asked"
 *     cancelled <batch>         the batch may have been cancelled (before it is asked)
 */
#pragma once

/* The main of the test program begins with it: the life of an actor, when it was started as one; else -1. */
int actor_main(int argc, char **argv);
