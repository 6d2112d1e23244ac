/* Partitions of a namespace: each is a complete namespace by itself, under a prefix of its own, "weir:{p}:". On a cluster they lie
 * on different masters.
 *
 * The home of a type, and of a limit, is the partition crc16(name up to its first dot) mod count. So types that share a limit have
 * names that begin alike: mail.bulk and mail.urgent may use the limit mail.provider. core/script/partition.lua is the same rule in Lua.
 *
 * A client learns the count without asking for it. A script that is asked for a name of another partition refuses, before any write, with
 * "WRONG-PARTITION <p> <count> <name>"; answers of administrative scripts say the count where it is not 1. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PARTITIONS_MOST 64
#define PREFIX_SIZE 144

/* Computes CRC16 as Redis Cluster does (XMODEM). */
unsigned partition_crc16(const char *bytes, size_t len);
/* Writes the prefix of partition p, "weir:{p}:", of the namespace that any of its prefixes names; to may be prefix. */
void partition_prefix(const char *prefix, int p, char to[PREFIX_SIZE]);
/* Writes what matches the prefixes of all partitions, "weir:{*}:"; to may be prefix. */
void partition_pattern(const char *prefix, char to[PREFIX_SIZE]);
/* Writes the name of the namespace, "weir", of any of its prefixes. */
void partition_namespace(const char *prefix, char to[PREFIX_SIZE]);
/* The slot of a Redis Cluster that has all keys of partition p. */
int partition_slot(int p);

/* Returns the home of a type or a limit, of `count` partitions; 0 or 1: all live on partition 0. */
int partition_home(const char *name, size_t len, int count);
/* True if the text is a refusal: *p is then where the name lives, and *count how many partitions there are. */
bool partition_learn(const char *text, int *p, int *count);
