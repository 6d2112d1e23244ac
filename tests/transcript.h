/* Transcripts: shell sessions with weir, as a person sees them, run and compared. A .txt file is one session;
 * in a .md file the fenced blocks marked console are, one after the other, and those marked sh: commands alone,
 * of which none may fail. A block with more behind that word, such as norun, is not run; one marked protocol is run by
 * test_protocol.
 *
 *   $ weir enqueue mail --id a          a command for bash; its next lines begin with "> "
 *   a                                   what it prints, standard error too
 *   $ weir why nobody
 *   weir: job nobody: <any>
 *   [exit 66]                           its exit code, when that is not 0
 *
 * The session runs in an empty folder, in which build, examples and tests are those of the source; weir is found in PATH, $REDIS_URL is a
 * Redis of its own, and tests/transcript.sh has a few functions more. The time zone is UTC. Variables, cd and "&" work as in any shell.
 *
 * What varies:
 *
 *   <n> 1,234 or 0.5    <id> a word    <time> 09:00:00, 2026-11-21 09:00, 2026-11-21T09:00:00Z
 *   <span> 8m 2s        <any> anything in a line        <lines> alone in a line: any lines, or none
 *
 * In a document "..." reads better than <any> and <lines>, and means the same; in a .txt file it is what weir prints where it cuts.
 *
 * Two blanks or more match any number of blanks, as between the columns of a table.
 *
 * In a .txt file a line that begins with "# " is a comment. In a .md file, between blocks:
 *
 *   <!-- varies: 8m 2s, 20:14:05 -->    these texts of the next block stand for <any>
 *   <!-- varies -->                     each word of the next block that has a digit may be another one
 *                                       (a time may be one at the earliest)
 *   <!-- $ weir enqueue mail -->        a command that readers do not see; it must end with 0
 *   <!-- fresh -->                      a new session begins, with an empty Redis
 *
 * WEIR_TRANSCRIPTS=write build/tests/test_transcripts writes what is printed now into the files, in place of
 * what differs. */
#pragma once

#include <stdbool.h>

/* The main of a program with a test for each file of these patterns; they end with NULL. */
int transcripts_run(const char *const *patterns);
/* Is text what lines of expected say? varies: texts that stand for <any>, joined by ", "; NULL: none. */
bool transcript_matches(const char *expected, const char *text, const char *varies);
