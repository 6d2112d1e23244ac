/* weir acl: what a user of a role needs of Redis, in words of ACL SETUSER. It asks no Redis: the rights are those that the
 * scripts need (core/script/rights.h). */
#include <string.h>

#include "cli/commands.h"
#include "cli/document/json.h"
#include "core/script/rights.h"

#define USER_MOST 64
#define USER_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"

static int check_roles(struct cli *cli, char **roles, int count)
{
    if (count == 0)
        return cli_usage(cli, "acl: the role is missing; give " RIGHTS_ROLES);
    for (int i = 0; i < count; i++)
        if (!rights_is_role(roles[i]))
            return cli_usage(cli, "acl %.60s: unknown role; give " RIGHTS_ROLES, roles[i]);
    return 0;
}

/* In an ACL file, and in lines of redis-cli, a name ends at a blank. */
static int check_user(struct cli *cli, const char *user)
{
    size_t len = strlen(user);

    if (len >= 1 && len <= USER_MOST && strspn(user, USER_CHARS) == len)
        return 0;
    return cli_usage(cli, "acl --user %.60s: use 1 to %d of A-Z a-z 0-9 _ . -", user, USER_MOST);
}

static bool has_word(const json_t *words, const char *word)
{
    const json_t *known;
    size_t i;

    json_array_foreach(words, i, known)
        if (strcmp(json_string_value(known), word) == 0)
            return true;
    return false;
}

/* Lists what all of these roles need, each word once. */
static json_t *rights_json(char **roles, int count, const char *prefix)
{
    json_t *words = json_pack("[s, s, s]", "resetkeys", "clearselectors", "-@all");
    char word[RIGHTS_WORD_SIZE];
    struct args a = {0};

    for (int i = 0; i < count; i++)
        rights_of(&a, roles[i]);
    for (size_t i = 0, from = 0; i < a.count; from = a.ends[i++]) {
        rights_word(a.bytes + from, a.ends[i] - from, prefix, word);
        if (!has_word(words, word))
            json_array_append_new(words, json_string(word));
    }
    args_free(&a);
    return words;
}

static void print_lines(const json_t *doc)
{
    const char *user = json_string_value(json_object_get(doc, "user"));
    const json_t *rights = json_object_get(doc, "rights");

    output("ACL SETUSER %s on >PASSWORD\nACL SETUSER %s", user, user);
    for (size_t i = 0; i < json_array_size(rights); i++)
        output(" %s", json_string_value(json_array_get(rights, i)));
    output("\n");
}

static const char *given; /* the user */

static const struct flag flags[] = {
    {"user", 0, FLAG_TEXT, "NAME", "the user's name; default weir-ROLE", &given},
    {.name = NULL},
};

static int act(struct cli *cli, struct weir *w)
{
    char prefix[PREFIX_SIZE], user[USER_MOST + 32];
    json_t *doc;

    (void)w;
    if (check_roles(cli, cli->operands, cli->operand_count) < 0 ||
        client_prefix(cli->ns, prefix, &cli->error) < 0)
        return cli->error.status;
    snprintf(user, sizeof user, given ? "%s" : "weir-%s", given ? given : cli->operands[0]);
    if (check_user(cli, given ? given : user) < 0)
        return cli->error.status;
    partition_pattern(prefix, prefix); /* nobody is asked how many there are */
    doc = json_pack("{s:s, s:o}", "user", user, "rights",
                    rights_json(cli->operands, cli->operand_count, prefix));
    if (cli->json)
        return json_print(cli, doc);
    print_lines(doc);
    json_decref(doc);
    return 0;
}

const struct command command_acl = {
    .name = "acl", .run = cli_run, .flags = flags, .no_redis = true, .takes_operands = true, .act = act};
