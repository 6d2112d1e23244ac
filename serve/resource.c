#include "serve/resource.h"

#include <stdbool.h>
#include <string.h>

#include "queue/inspect/job_search.h"
#include "serve/fields.h"

static bool matches(const char *pattern, const char *path, char name[RESOURCE_NAME_SIZE])
{
    while (*pattern) {
        size_t len = strcspn(path, "/?");

        if (*pattern == '*') {
            if (len == 0 || len >= RESOURCE_NAME_SIZE || !url_decode(path, len, false, name))
                return false;
            pattern++;
            path += len;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return *path == '\0' || *path == '?';
}

static bool is_of_payload(const char *field)
{
    return strncmp(field, "args", strlen("args")) == 0 || strcmp(field, "key") == 0 ||
           strcmp(field, "reason") == 0;
}

int ask_search(struct weir *w, const struct ask *ask, const char *field, struct job_search *search)
{
    const char *text = field_text(ask->fields, field);

    *search = (struct job_search){0};
    if (text && job_search_read(search, text, &w->error) < 0)
        return w->error.status;
    for (size_t i = 0; ask->hide_args && i < search->count; i++)
        if (is_of_payload(search->text + search->terms[i].field))
            return error_set(&w->error, WEIR_EINPUT,
                             "%s: payloads are hidden here; search without args, key and reason", field);
    return 0;
}

const struct resource *resource_find(const struct resource *table, const char *path,
                                     char name[RESOURCE_NAME_SIZE])
{
    for (; table->path; table++)
        if (matches(table->path, path, name))
            return table;
    return NULL;
}
