#include "core/client/partition.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 16384
#define HOMES_MOST                                                                                           \
    256 /* remembered; another one replaces the oldest, which costs one refusal when it is needed again */

struct partition_home {
    char name[129];
    unsigned char at;
};

unsigned partition_crc16(const char *bytes, size_t len)
{
    unsigned crc = 0;

    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned)(unsigned char)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1) & 0xffff;
    }
    return crc;
}

void partition_prefix(const char *prefix, int p, char to[PREFIX_SIZE])
{
    char made[PREFIX_SIZE];

    snprintf(made, sizeof made, "%.*s{%d}:", (int)strcspn(prefix, "{"), prefix, p);
    strcpy(to, made);
}

void partition_pattern(const char *prefix, char to[PREFIX_SIZE])
{
    char made[PREFIX_SIZE];

    snprintf(made, sizeof made, "%.*s{*}:", (int)strcspn(prefix, "{"), prefix);
    strcpy(to, made);
}

void partition_namespace(const char *prefix, char to[PREFIX_SIZE])
{
    size_t len = strcspn(prefix, ":");

    memcpy(to, prefix, len);
    to[len] = '\0';
}

int partition_slot(int p)
{
    char tag[24];
    int len = snprintf(tag, sizeof tag, "%d", p);

    return (int)(partition_crc16(tag, (size_t)len) % SLOTS);
}

static struct partition_home *find(const struct partitions *k, const char *name, size_t len)
{
    for (size_t i = 0; i < k->home_count; i++)
        if (strncmp(k->homes[i].name, name, len) == 0 && !k->homes[i].name[len])
            return &k->homes[i];
    return NULL;
}

int partitions_home(const struct partitions *k, const char *name, size_t len)
{
    const struct partition_home *home;

    if (k->count <= 1 || len >= sizeof home->name)
        return 0;
    home = find(k, name, len);
    return home ? home->at : (int)(partition_crc16(name, len) % (unsigned)k->count);
}

/* The row of a name; NULL: out of memory, and the next call is refused again. */
static struct partition_home *row_of(struct partitions *k, const char *name)
{
    struct partition_home *home = find(k, name, strlen(name));

    if (home)
        return home;
    if (!k->homes)
        k->homes = calloc(HOMES_MOST, sizeof *k->homes);
    if (!k->homes)
        return NULL;
    home = &k->homes[k->home_next];
    k->home_next = (k->home_next + 1) % HOMES_MOST;
    if (k->home_count < HOMES_MOST)
        k->home_count++;
    snprintf(home->name, sizeof home->name, "%s", name);
    return home;
}

bool partitions_note(struct partitions *k, const char *name, int at, int count)
{
    if (at < 0 || at >= count || count > PARTITIONS_MOST)
        return false;
    if (count != k->count)
        partitions_free(k);
    k->count = count;
    if (partitions_home(k, name, strlen(name)) != at) {
        struct partition_home *home = row_of(k, name);

        if (home)
            home->at = (unsigned char)at;
    }
    return true;
}

bool partitions_learn(struct partitions *k, const char *text, int *p)
{
    char name[129];
    int count, at;

    if (sscanf(text, "WRONG-PARTITION %d %d %128[A-Za-z0-9_.-]", &at, &count, name) != 3 ||
        !partitions_note(k, name, at, count))
        return false;
    *p = at;
    return true;
}

void partitions_free(struct partitions *k)
{
    free(k->homes);
    k->homes = NULL;
    k->count = 0;
    k->home_count = k->home_next = 0;
}
