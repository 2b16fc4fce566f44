/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/add_secrets.h"

#include "cli/secret.h"
#include "config/config.h"
#include "json/write.h"

#define REFERENCES_MAX 256 /* a server may use as many */

struct str add_secrets_config(struct cli *cli, const char *server, struct str entry)
{
    struct js_writer w;
    struct buf out;

    buf_init_secret(&out, SIZE_MAX / 4);
    js_begin(&w, &out);
    js_object(&w);
    js_key(&w, STR("mcpServers"));
    js_object(&w);
    js_key(&w, str_of(server));
    js_raw_value(&w, entry);
    js_object_end(&w);
    js_object_end(&w);
    struct str text = arena_dup(cli->mem, buf_str(&out));
    buf_release(&out);
    return text;
}

/* Replaces `what` by `value`, both inside strings of JSON. */
static struct str replaced(struct str entry, struct str what, struct str value, struct arena *mem)
{
    struct js_writer w;
    struct buf quoted, out;

    buf_init_secret(&quoted, SIZE_MAX / 4);
    buf_init_secret(&out, SIZE_MAX / 4);
    js_begin(&w, &quoted);
    js_string(&w, value);
    for (size_t i = 0; i < entry.n;) {
        bool found = str_starts(str_n(entry.p + i, entry.n - i), what);
        if (found)
            buf_add(&out, quoted.p + 1, quoted.n - 2);
        else
            buf_add(&out, entry.p + i, 1);
        i += found ? what.n : 1;
    }
    struct str text = arena_dup(mem, buf_str(&out));
    buf_release(&quoted);
    buf_release(&out);
    return text;
}

/* Asks for the value, so that the trial has it and it is stored later. */
static bool ask(struct cli *cli, const struct secret_use *use, struct add_secrets *s,
                struct error *err)
{
    struct str name = arena_dup(cli->mem, use->name);
    struct str reference =
        arena_printf(cli->mem, "${%s:%.*s}", use->is_input ? "input" : "secret", STR_ARG(name));
    struct buf value;

    buf_init_secret(&value, CONFIG_SECRET_BYTES_MAX);
    bool ok = secret_read_terminal(name, STR_NONE, &value, err);
    if (ok) {
        struct str text = arena_dup(cli->mem, buf_str(&value));
        s->list[s->n++] = (struct add_secret){name, text};
        s->for_trial = replaced(s->for_trial, reference, text, cli->mem);
    }
    buf_release(&value);
    return ok;
}

static bool take_reference(struct cli *cli, const struct secret_use *use, struct add_secrets *s,
                           struct error *err)
{
    bool is_set;

    if (!secret_is_set(cli, use->name, &is_set, err))
        return false;
    if (!is_set && secret_can_ask())
        return ask(cli, use, s, err);
    if (!s->unknown.p) {
        s->unknown = arena_dup(cli->mem, use->name);
        s->unknown_is_set = is_set;
    }
    return true;
}

/* Takes "FILE:LINE:COLUMN: " off: the entry was not read from a file, so the place means nothing. */
static void without_place(struct error *err, const char *file)
{
    size_t n = strlen(file);
    const char *p = err->text + n;

    if (strncmp(err->text, file, n) != 0)
        return;
    p += strspn(p, ":0123456789");
    p += *p == ' ';
    memmove(err->text, p, strlen(p) + 1);
}

static bool parse_entry(struct cli *cli, const char *server, struct str entry, bool is_for_edit,
                        struct config **ret, struct error *err)
{
    static const char file[] = "the new server";

    if (config_parse(add_secrets_config(cli, server, entry), str_of(file),
                     &(struct config_source){.is_for_edit = is_for_edit}, ret, err))
        return true;
    without_place(err, file);
    return false;
}

bool add_secrets_parse(struct cli *cli, const char *server, struct str entry, struct config **ret,
                       struct error *err)
{
    return parse_entry(cli, server, entry, false, ret, err);
}

/* The references that the entry came with. */
static bool take_references(struct cli *cli, const char *server, struct str entry,
                            struct add_secrets *s, struct error *err)
{
    struct config *c;
    bool ok = true;

    if (!parse_entry(cli, server, entry, true, &c, err))
        return false;
    for (size_t i = 0; i < c->n_servers && ok; i++) {
        if (!str_eq(c->servers[i].name, str_of(server)))
            continue;
        for (size_t k = 0; k < c->servers[i].n_secrets && ok; k++)
            ok = take_reference(cli, &c->servers[i].secrets[k], s, err);
    }
    config_unref(c);
    if (s->unknown.p)
        s->for_trial = STR_NONE;
    return ok;
}

bool add_secrets_take(struct cli *cli, const char *server, struct str entry,
                      struct add_secrets *ret, struct error *err)
{
    struct add_secret *found = NULL;
    size_t n = 0;

    *ret = (struct add_secrets){.for_file = entry, .for_trial = entry};
    if (!cli_flag(cli, "--plain") &&
        !add_entry_seal(entry, str_of(server), cli->mem, &ret->for_file, &found, &n, err))
        return false;
    ret->list = arena_zalloc(cli->mem, (n + REFERENCES_MAX) * sizeof(*ret->list));
    for (size_t i = 0; i < n; i++)
        ret->list[ret->n++] = found[i];
    return take_references(cli, server, entry, ret, err);
}

bool add_secrets_store(struct cli *cli, const struct add_secrets *s, struct error *err)
{
    struct source source = {0};

    if (s->n == 0)
        return true;
    bool ok = source_open(cli, SOURCE_CHANGES, &source, err);
    for (size_t i = 0; i < s->n && ok; i++)
        ok = secret_put(cli, &source, s->list[i].name, s->list[i].value, err);
    source_close(&source);
    return ok;
}
