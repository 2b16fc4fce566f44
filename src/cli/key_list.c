/* SPDX-License-Identifier: Apache-2.0 */
/* Reads all pages of GET /api/v1/keys. */
#include "cli/key_list.h"

#include "base/clock.h"
#include "base/log.h"
#include "cli/source.h"
#include "cli/table.h"
#include "cli/when.h"
#include "store/store.h"

#include <stdio.h>
#include <unistd.h>

typedef bool key_fn(void *arg, const struct js_doc *doc, const struct js_node *key);

static bool each_key(struct control *control, struct str tenant, struct arena *mem, key_fn *fn,
                     void *arg, struct error *err)
{
    struct str cursor = STR_NONE, json = STR_NONE;
    bool goes_on = true;

    do {
        struct js_doc doc;
        struct str path = arena_printf(
            mem, "/api/v1/keys?limit=%d%s%.*s%s%.*s", STORE_PAGE_MAX, tenant.p ? "&tenant=" : "",
            STR_ARG(source_encoded(tenant, mem)), cursor.p ? "&cursor=" : "", STR_ARG(cursor));
        if (!control_get(control, path, mem, &json, err) || !source_parse(json, mem, &doc, err))
            return false;
        const struct js_node *keys = js_get(&doc, js_root(&doc), STR("keys"));
        for (const struct js_node *k = js_first(&doc, keys); k && goes_on;
             k = js_next(&doc, keys, k))
            goes_on = fn(arg, &doc, k);
        cursor = js_text(&doc, js_get(&doc, js_root(&doc), STR("next_cursor")), mem);
    } while (cursor.p && goes_on);
    return true;
}

/* list */

static const struct table_column columns[] = {
    {"ID", 0, false},   {"NAME", 6, false},       {"STATE", 0, false},     {"ROLE", 0, false},
    {"USER", 5, false}, {"LIMITED TO", 8, false}, {"LAST USED", 0, false},
};
static const struct table_column tenant_columns[] = {
    {"ID", 0, false},   {"TENANT", 6, false}, {"NAME", 6, false},       {"STATE", 0, false},
    {"ROLE", 0, false}, {"USER", 5, false},   {"LIMITED TO", 8, false}, {"LAST USED", 0, false},
};

struct listing {
    const struct cli *cli;
    struct buf *out;
    struct table table;
    bool json, utc, shows_tenants;
    size_t n;
};

static struct str day_of(const struct listing *l, struct str text)
{
    char shown[WHEN_TEXT];
    int64_t ms;

    if (!clock_parse(text, &ms))
        return STR("");
    struct str time = str_of(when_format(ms, clock_wall_ms(), l->utc, shown));
    return arena_dup(l->cli->mem, str_n(time.p, time.n < 10 ? time.n : 10));
}

/* "active", "to 2026-12-01", "expired" or "revoked". */
static struct str state_of(const struct listing *l, const struct js_doc *doc,
                           const struct js_node *key)
{
    struct arena *mem = l->cli->mem;
    struct str expires = source_text(doc, key, "expires_at", mem);
    char now[CLOCK_TEXT];

    if (source_text(doc, key, "revoked_at", mem).n)
        return STR("revoked");
    clock_format(clock_wall_ms(), now);
    if (!expires.n)
        return STR("active");
    return str_cmp(expires, str_of(now)) <= 0
               ? STR("expired")
               : arena_printf(mem, "to %.*s", STR_ARG(day_of(l, expires)));
}

static void add_word(struct str *text, struct str word, struct arena *mem)
{
    *text = arena_printf(mem, "%.*s%s%.*s", STR_ARG(*text), text->n ? ", " : "", STR_ARG(word));
}

/* The limits of the key.  Servers are left out if tools are listed, because tools name them. */
static struct str scopes_of(const struct js_doc *doc, const struct js_node *key, struct arena *mem)
{
    const struct js_node *scopes = js_get(doc, key, STR("scopes"));
    static const char *const lists[] = {"servers", "tools", "folders"};
    struct str text = STR("");

    if (!js_type_is(scopes, JS_OBJECT))
        return STR("");
    for (size_t i = 0; i < countof(lists); i++) {
        const struct js_node *list = js_get(doc, scopes, str_of(lists[i]));
        if (!js_type_is(list, JS_ARRAY) || (i == 0 && js_get(doc, scopes, STR("tools"))))
            continue;
        for (const struct js_node *v = js_first(doc, list); v; v = js_next(doc, list, v))
            add_word(&text, js_text(doc, v, mem), mem);
    }
    if (js_type_is(js_get(doc, scopes, STR("read_only")), JS_TRUE))
        add_word(&text, STR("read-only"), mem);
    return text.n ? text : STR("all");
}

static bool see_tenant(void *arg, const struct js_doc *doc, const struct js_node *key)
{
    struct listing *l = arg;

    l->shows_tenants = !str_eq(source_text(doc, key, "tenant", l->cli->mem), STR("default"));
    return !l->shows_tenants;
}

static bool add_key(void *arg, const struct js_doc *doc, const struct js_node *key)
{
    struct listing *l = arg;
    struct arena *mem = l->cli->mem;
    struct str state = state_of(l, doc, key), used;

    l->n++;
    if (l->json) {
        buf_addstr(l->out, js_raw(doc, key));
        buf_addc(l->out, '\n');
        return true;
    }
    used = day_of(l, source_text(doc, key, "last_used_at", mem));
    table_add(&l->table, source_text(doc, key, "id", mem));
    if (l->shows_tenants)
        table_add(&l->table, source_text(doc, key, "tenant", mem));
    table_add(&l->table, source_text(doc, key, "name", mem));
    table_add_coloured(&l->table, state,
                       str_eq(state, STR("active")) || str_starts(state, STR("to ")) ? "32" : "2");
    table_add(&l->table, source_text(doc, key, "role", mem));
    table_add(&l->table, source_text(doc, key, "user_name", mem));
    table_add(&l->table, scopes_of(doc, key, mem));
    table_add(&l->table, used.n ? used : STR("never"));
    return true;
}

bool key_list(const struct cli *cli, struct control *control, struct str tenant, struct buf *out,
              struct error *err)
{
    struct listing l = {
        .cli = cli, .out = out, .json = cli_flag(cli, "--json"), .utc = cli_flag(cli, "--utc")};

    if (!l.json && !each_key(control, tenant, cli->mem, see_tenant, &l, err))
        return false;
    table_init(&l.table, l.shows_tenants ? tenant_columns : columns,
               l.shows_tenants ? countof(tenant_columns) : countof(columns),
               table_terminal_width(STDOUT_FILENO), cli_colour(STDOUT_FILENO));
    bool ok = each_key(control, tenant, cli->mem, add_key, &l, err);
    if (ok && l.n && !l.json)
        table_print(&l.table, out);
    table_release(&l.table);
    if (ok && !l.n && !l.json && tenant.p)
        fprintf(stderr, "tenant %.*s has no keys; without --tenant all keys are listed\n",
                STR_ARG(tenant));
    else if (ok && !l.n && !l.json)
        fprintf(stderr, "there are no keys yet; make one with `holdfast key create`\n");
    return ok;
}

/* The key that a name means. */

struct search {
    struct arena *mem;
    struct str name, id, ids; /* ids: of all keys with the name */
    size_t n;
    bool is_id;
    struct cli_nearest near;
};

static bool compare(void *arg, const struct js_doc *doc, const struct js_node *key)
{
    struct search *s = arg;
    struct str id = source_text(doc, key, "id", s->mem),
               name = source_text(doc, key, "name", s->mem);

    if (str_eq(id, s->name)) {
        s->id = id;
        s->is_id = true;
        return false;
    }
    if (source_text(doc, key, "revoked_at", s->mem).n)
        return true;
    if (str_eq(name, s->name)) {
        s->id = id;
        add_word(&s->ids, id, s->mem);
        s->n++;
    } else if (name.n) {
        cli_nearest_offer(&s->near, arena_dup(s->mem, name).p);
    }
    return true;
}

bool key_find(const struct cli *cli, struct control *control, struct str tenant, struct str name,
              struct str *ret_id, struct error *err)
{
    struct search s = {.mem = cli->mem, .name = name, .near = cli_nearest_to(name)};
    struct str shown = str_cut(name, 100);

    if (!each_key(control, tenant, cli->mem, compare, &s, err))
        return false;
    if (s.n > 1 && !s.is_id)
        return error_set(err, ERR_CONFLICT,
                         "%zu keys are named \"%.*s\": %.*s; say the id of the one you mean", s.n,
                         STR_ARG(shown), (int)(s.ids.n < 300 ? s.ids.n : 300), s.ids.p);
    if (!s.n && !s.is_id && s.near.name)
        return error_set(err, ERR_NOT_FOUND,
                         "no key has the id or name \"%.*s\"; did you mean \"%.100s\"?",
                         STR_ARG(shown), s.near.name);
    if (!s.n && !s.is_id)
        return error_set(err, ERR_NOT_FOUND,
                         "no key has the id or name \"%.*s\"; see `holdfast key list`",
                         STR_ARG(shown));
    *ret_id = arena_dup(cli->mem, s.id);
    return true;
}
