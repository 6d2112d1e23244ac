#include "queue/inspect/job_search.h"
#include "tests/fuzz/fuzz.h"

/* Its fields and values, each ended by a NUL, stand one behind the other. */
static void check_terms(const struct job_search *s)
{
    must_hold(s->count <= JOB_TERMS_MOST && s->len <= JOB_SEARCH_SIZE);
    for (size_t i = 0; i < s->count; i++) {
        must_hold(s->terms[i].field < s->terms[i].value && s->terms[i].value < s->len);
        must_hold(*(s->text + s->terms[i].field) != '\0');
        fuzz_touch(s->text + s->terms[i].field, strlen(s->text + s->terms[i].field));
        fuzz_touch(s->text + s->terms[i].value, strlen(s->text + s->terms[i].value) + 1);
    }
}

/* What was read is read again as the same, where all of its values stand in quotes. */
static void read_again(const struct job_search *s)
{
    struct error e;

    for (size_t i = 0; i < s->count; i++) {
        const char *field = s->text + s->terms[i].field, *value = s->text + s->terms[i].value;
        char text[3 * JOB_SEARCH_SIZE], *to = text;
        struct job_search one = {.count = 0};

        if (strcmp(field, "made") == 0 || strcmp(field, "older") == 0 || strcmp(field, "newer") == 0)
            continue;
        to += sprintf(to, "%s:\"", field);
        for (const char *at = value; *at; at++) {
            if (*at == '"' || *at == '\\')
                *to++ = '\\';
            *to++ = *at;
        }
        strcpy(to, "\"");
        if (strlen(text) > 1500)
            continue;
        must_hold(job_search_read(&one, text, &e) == 0);
        must_hold(strcmp(job_search_value(&one, field), value) == 0);
    }
}

int fuzz_search(const uint8_t *data, size_t size)
{
    struct job_search s = {.count = 0};
    struct error e = {.text = ""};
    char *text = fuzz_text(data, size);
    int status = job_search_read(&s, text, &e);

    must_hold(status == 0 || (status == WEIR_EINPUT && strncmp(e.text, "search", 6) == 0));
    check_terms(&s);
    if (status == 0)
        read_again(&s);
    free(text);
    return 0;
}
