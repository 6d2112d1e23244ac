#include "core/script/rights.h"

#include <stdio.h>
#include <string.h>

#include "core/script/script.h"

/* Commands that programs send without a script. */
/* None has CONFIG GET, which shows passwords, and cannot be given for some settings alone. Who may load functions may replace those that
 * others call: only roles that may change all jobs anyway have that. The slow log shows what other users of Redis ask. */
static const struct {
    const char *role, *commands, *keys;
} own[] = {
    {"operator", "fcall blpop blmove slowlog|get acl|whoami function|list function|load function|delete", ""},
    {"producer", "fcall", "RW~role:producer"},
    {"taker", "fcall", "RW~role:taker (+blpop,RW~turn:*)"},
    {"viewer", "acl|whoami function|list", ""},
    {"worker", "fcall blpop blmove function|load", "RW~role:worker"},
};
#define OWN_COUNT (sizeof own / sizeof *own)
#define OF_ALL "fcall_ro info ping select role cluster|slots"
#define PREFIX_ALONE "R~"

/* Adds each word of a text, behind mark. */
static void add_words(struct args *a, const char *mark, const char *words)
{
    char word[RIGHTS_WORD_SIZE];

    while (*(words += strspn(words, " "))) {
        int len = (int)strcspn(words, " ");

        snprintf(word, sizeof word, "%s%.*s", mark, len, words);
        args_add(a, word);
        words += len;
    }
}

bool rights_is_role(const char *role)
{
    for (size_t i = 0; i < OWN_COUNT; i++)
        if (strcmp(own[i].role, role) == 0)
            return true;
    return false;
}

void rights_of(struct args *a, const char *role)
{
    add_words(a, "+", OF_ALL);
    for (size_t i = 0; i < OWN_COUNT; i++)
        if (strcmp(own[i].role, role) == 0)
            add_words(a, "+", own[i].commands);
    for (const struct script_role *r = script_roles; r->name; r++)
        if (strcmp(r->name, role) == 0)
            add_words(a, "", r->rights);
    for (size_t i = 0; i < OWN_COUNT; i++)
        if (strcmp(own[i].role, role) == 0)
            add_words(a, "", own[i].keys);
    args_add(a, PREFIX_ALONE);
}

static void write_right(const char *word, size_t len, const char *prefix, char *out, size_t size)
{
    const char *tilde = memchr(word, '~', len);
    int mode = tilde ? (int)(tilde - word) : 0;

    if (!tilde)
        snprintf(out, size, "%.*s", (int)len, word);
    else
        snprintf(out, size, "%s%.*s~%s%.*s", mode == 2 ? "" : "%", mode == 2 ? 0 : mode, word, prefix,
                 (int)len - mode - 1, tilde + 1);
}

void rights_word(const char *word, size_t len, const char *prefix, char out[RIGHTS_WORD_SIZE])
{
    const char *end = word + len;
    size_t at = 0;

    if (len == 0 || *word != '(') {
        write_right(word, len, prefix, out, RIGHTS_WORD_SIZE);
        return;
    }
    for (const char *part = word + 1; part < end && at < RIGHTS_WORD_SIZE - 1;) {
        size_t part_len = 0;

        while (part + part_len < end && !strchr(",)", part[part_len]))
            part_len++;
        out[at++] = part == word + 1 ? '(' : ' ';
        write_right(part, part_len, prefix, out + at, RIGHTS_WORD_SIZE - at);
        at += strlen(out + at);
        part += part_len + 1;
    }
    if (at < RIGHTS_WORD_SIZE - 1)
        strcpy(out + at, ")");
}
