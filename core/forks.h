/* fork(): a child has a copy of all memory, and shares the files and connections behind its descriptors. What
 * belongs to one process notes forks_count() when it is made; where the number has changed since, it is the
 * parent's.
 *
 * A handler of pthread_atfork() counts: reading a number costs nothing where getpid() is a system call, and a
 * number of a process may come again. vfork(), posix_spawn() and system() are not counted, as their children
 * only run a program. */
#pragma once

/* How often fork() lies between this process and the first of its ancestors that had the library loaded. From
 * any thread and from signal handlers. */
unsigned forks_count(void);
