/* SHA-1 as in FIPS 180-4. It names gates; nothing secret hangs on it. */
#include "throttle/key.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 64

static bool is_name(const char *text, size_t len)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

    for (size_t i = 0; i < len; i++)
        if (!memchr(letters, text[i], sizeof letters - 1))
            return false;
    return len > 0 && len < LIMIT_NAME_SIZE;
}

/* The key of jobs without one, or what a hash looks like? (queue/claim/claim_park.lua) */
static bool looks_made(const char *text, size_t len)
{
    static const char digits[] = "0123456789abcdef";

    if (len == 1)
        return *text == '-';
    if (len != 42 || memcmp(text, "h.", 2) != 0)
        return false;
    for (size_t i = 2; i < len; i++)
        if (!memchr(digits, text[i], sizeof digits - 1))
            return false;
    return true;
}

static uint32_t rotated(uint32_t word, int bits)
{
    return word << bits | word >> (32 - bits);
}

static uint32_t read_word(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* The function and the constant of round i. */
static uint32_t round_term(int i, const uint32_t s[5])
{
    if (i < 20)
        return ((s[1] & s[2]) | (~s[1] & s[3])) + 0x5a827999;
    if (i < 40)
        return (s[1] ^ s[2] ^ s[3]) + 0x6ed9eba1;
    if (i < 60)
        return ((s[1] & s[2]) | (s[1] & s[3]) | (s[2] & s[3])) + 0x8f1bbcdc;
    return (s[1] ^ s[2] ^ s[3]) + 0xca62c1d6;
}

static void add_block(uint32_t hash[5], const unsigned char *block)
{
    uint32_t w[80], s[5];

    for (int i = 0; i < 80; i++)
        w[i] = i < 16 ? read_word(block + 4 * i) : rotated(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    memcpy(s, hash, sizeof s);
    for (int i = 0; i < 80; i++) {
        uint32_t next = rotated(s[0], 5) + round_term(i, s) + s[4] + w[i];

        s[4] = s[3];
        s[3] = s[2];
        s[2] = rotated(s[1], 30);
        s[1] = s[0];
        s[0] = next;
    }
    for (int i = 0; i < 5; i++)
        hash[i] += s[i];
}

/* What is left of the text, a one bit, zeros, and its length in bits. */
static void add_end(uint32_t hash[5], const char *rest, size_t rest_len, size_t len)
{
    unsigned char end[2 * BLOCK] = {0};
    size_t size = rest_len + 9 <= BLOCK ? BLOCK : 2 * BLOCK;

    memcpy(end, rest, rest_len);
    end[rest_len] = 0x80;
    for (int i = 0; i < 8; i++)
        end[size - 1 - (size_t)i] = (unsigned char)((uint64_t)len * 8 >> (8 * i));
    for (size_t at = 0; at < size; at += BLOCK)
        add_block(hash, end + at);
}

void key_make(const char *text, size_t len, char key[LIMIT_NAME_SIZE])
{
    uint32_t hash[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    size_t at = 0;

    if (is_name(text, len) && !looks_made(text, len)) {
        memcpy(key, text, len);
        key[len] = '\0';
        return;
    }
    for (; len - at >= BLOCK; at += BLOCK)
        add_block(hash, (const unsigned char *)text + at);
    add_end(hash, text + at, len - at, len);
    snprintf(key, LIMIT_NAME_SIZE, "h.%08x%08x%08x%08x%08x", hash[0], hash[1], hash[2], hash[3], hash[4]);
}
