/* Partitions of a namespace: each is a complete namespace by itself, under a prefix of its own, "weir:{p}:". On a cluster they lie
 * on different masters. A type, and the limit of its name, lives on partition crc16(name) mod count, unless the namespace has noted
 * another home for it. core/script/partition.lua is the same rule in Lua.
 *
 * Nobody asks for the count. A script that is asked for a name of another partition refuses, before any write, with
 * "WRONG-PARTITION <p> <count> <name>"; answers of administrative scripts say the count where it is not 1. What was learned is
 * remembered here. */
#ifndef CORE_CLIENT_PARTITION_H
#define CORE_CLIENT_PARTITION_H

#include <stdbool.h>
#include <stddef.h>

#define PARTITIONS_MOST 64
#define PREFIX_SIZE 144

/* CRC16 as Redis Cluster computes it (XMODEM). */
unsigned partition_crc16(const char *bytes, size_t len);
/* "weir:{p}:", of the namespace of any of its prefixes; to may be prefix. */
void partition_prefix(const char *prefix, int p, char to[PREFIX_SIZE]);
/* What matches the prefixes of all partitions, "weir:{*}:"; to may be prefix. */
void partition_pattern(const char *prefix, char to[PREFIX_SIZE]);
/* "weir", of any of its prefixes. */
void partition_namespace(const char *prefix, char to[PREFIX_SIZE]);
/* The slot of a Redis Cluster that has all keys of partition p. */
int partition_slot(int p);

struct partition_home;

/* What is known of a namespace. Zeroed: nothing. */
struct partitions {
    int count; /* 0: not known; all is taken to live on partition 0 */
    struct partition_home *homes;
    size_t home_count, home_next;
};
/* Where a type or limit lives, as far as is known. */
int partitions_home(const struct partitions *k, const char *name, size_t len);
/* Is that text a refusal? Then it is remembered, and *p is where the name lives. */
bool partitions_learn(struct partitions *k, const char *text, int *p);
/* Remembers that a name lives on that partition of so many; false: there are no such partitions. */
bool partitions_note(struct partitions *k, const char *name, int at, int count);
void partitions_free(struct partitions *k);

#endif
