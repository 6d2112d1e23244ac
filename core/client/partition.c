#include "core/client/partition.h"

#include <stdio.h>
#include <string.h>

#define SLOTS 16384

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

int partition_home(const char *name, size_t len, int count)
{
    const char *dot = memchr(name, '.', len);

    if (count <= 1)
        return 0;
    return (int)(partition_crc16(name, dot ? (size_t)(dot - name) : len) % (unsigned)count);
}

bool partition_learn(const char *text, int *p, int *count)
{
    return sscanf(text, "WRONG-PARTITION %d %d", p, count) == 2 && *p >= 0 && *p < *count &&
           *count <= PARTITIONS_MOST;
}
