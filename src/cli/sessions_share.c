/* SPDX-License-Identifier: Apache-2.0 */
/* A client of /api/v1/sessions/{id}/shares and /fork. */
#include "cli/sessions_share.h"

#include "base/clock.h"
#include "base/log.h"
#include "cli/control.h"
#include "cli/source.h"
#include "cli/table.h"
#include "cli/when.h"
#include "json/write.h"

#include <stdio.h>

#define SHARE_LEAST 4 /* characters of the beginning of an id */
#define OUT_MAX ((size_t)1 << 20)

static struct str path_of(const struct sessions_share *s, const char *rest)
{
    struct arena *mem = s->cli->mem;

    return arena_printf(mem, "/api/v1/sessions/%.*s/%s%s%.*s",
                        STR_ARG(source_encoded(s->handle, mem)), rest,
                        s->tenant.p ? "?tenant=" : "", STR_ARG(source_encoded(s->tenant, mem)));
}

static bool print(const struct sessions_share *s, struct str text)
{
    struct buf out;

    buf_init(&out, OUT_MAX);
    buf_addstr(&out, text);
    bool ok = cli_print(s->cli, &out) == 0;
    buf_release(&out);
    return ok;
}

/* Time and rest of a share, for people. */
static struct str time_of(const struct sessions_share *s, const struct js_doc *doc,
                          const struct js_node *share, const char *name)
{
    struct str text = source_text(doc, share, name, s->cli->mem);
    char shown[WHEN_TEXT];
    int64_t ms;

    if (!clock_parse(text, &ms))
        return STR("");
    return arena_dup(s->cli->mem, str_of(when_format(ms, clock_wall_ms(), s->utc, shown)));
}

/* share */

static struct str wish(const struct sessions_share *s)
{
    const char *user = cli_flag(s->cli, "--user"), *client = cli_flag(s->cli, "--client"),
               *may = cli_flag(s->cli, "--may"), *expires = cli_flag(s->cli, "--expires");
    struct js_writer w;
    struct buf out;

    buf_init(&out, OUT_MAX);
    js_begin(&w, &out);
    js_object(&w);
    if (user || client) {
        js_key(&w, STR("grantee"));
        js_object(&w);
        js_kv_string(&w, user ? "user" : "client", str_of(user ? user : client));
        js_object_end(&w);
    }
    js_kv_string(&w, "may", str_of(may));
    js_kv_string(&w, "expires", str_of(expires));
    js_object_end(&w);
    struct str body = arena_dup(s->cli->mem, buf_str(&out));
    buf_release(&out);
    return body;
}

/* To stderr, so that stdout holds the code alone. */
static void tell_how(const struct sessions_share *s, const struct js_doc *doc)
{
    const struct js_node *share = js_root(doc);
    struct str may = source_text(doc, share, "may", s->cli->mem),
               expires = time_of(s, doc, share, "expires_at");
    bool hands_over = str_eq(may, STR("hand_over"));

    if (source_text(doc, share, "code", s->cli->mem).n)
        fprintf(stderr,
                "this code works once, until %.*s: say \"join with\" and the code in another "
                "client, which then %s\n",
                STR_ARG(expires),
                hands_over                 ? "takes the session over"
                : str_eq(may, STR("read")) ? "may see the session"
                                           : "goes on in the session");
    else
        fprintf(stderr, "shared (%.*s)%s; end it with holdfast sessions unshare\n", STR_ARG(may),
                hands_over ? ": the session is theirs once they join it" : "");
}

bool sessions_share_make(const struct sessions_share *s, struct error *err)
{
    struct str json;
    struct js_doc doc;

    if (cli_flag(s->cli, "--user") && cli_flag(s->cli, "--client"))
        return error_set(err, ERR_USAGE, "sessions share takes --user or --client, not both");
    if (!control_ask(s->control, "POST", path_of(s, "shares"), wish(s), s->cli->mem, &json, err) ||
        !source_parse(json, s->cli->mem, &doc, err))
        return false;
    struct str code = source_text(&doc, js_root(&doc), "code", s->cli->mem);
    if (s->json)
        return print(s, json);
    tell_how(s, &doc);
    return !code.n || print(s, code);
}

/* shares */

static const struct table_column columns[] = {
    {"ID", 0, false},     {"MAY", 0, false},  {"STATUS", 0, false}, {"FOR", 8, false},
    {"CLIENT", 6, false}, {"MADE", 0, false}, {"ENDS", 0, false},
};

static void add_escaped(struct table *t, const struct sessions_share *s, struct str text)
{
    struct buf out;

    buf_init(&out, OUT_MAX);
    log_escape(&out, text, 255);
    table_add(t, arena_dup(s->cli->mem, buf_str(&out)));
    buf_release(&out);
}

static void add_share(struct table *t, const struct sessions_share *s, const struct js_doc *doc,
                      const struct js_node *share)
{
    struct arena *mem = s->cli->mem;
    struct str grantee = source_text(doc, share, "grantee", mem),
               ended = time_of(s, doc, share, "ended_at");

    table_add(t, source_text(doc, share, "id", mem));
    table_add(t, source_text(doc, share, "may", mem));
    table_add(t, source_text(doc, share, "status", mem));
    add_escaped(t, s, grantee.n ? grantee : STR("whoever has the code"));
    add_escaped(t, s, source_text(doc, share, "joined_client", mem));
    table_add(t, time_of(s, doc, share, "created_at"));
    table_add(t, ended.n ? ended : time_of(s, doc, share, "expires_at"));
}

static bool read_shares(const struct sessions_share *s, struct str *ret_json, struct js_doc *ret,
                        struct error *err)
{
    return control_get(s->control, path_of(s, "shares"), s->cli->mem, ret_json, err) &&
           source_parse(*ret_json, s->cli->mem, ret, err);
}

bool sessions_share_list(const struct sessions_share *s, struct error *err)
{
    struct table t;
    struct str json;
    struct js_doc doc;
    struct buf out;
    bool any = false;

    if (!read_shares(s, &json, &doc, err))
        return false;
    const struct js_node *shares = js_get(&doc, js_root(&doc), STR("shares"));
    buf_init(&out, SIZE_MAX / 4);
    table_init(&t, columns, countof(columns), s->width, s->colour);
    for (const struct js_node *x = js_first(&doc, shares); x; x = js_next(&doc, shares, x)) {
        any = true;
        if (s->json)
            buf_addf(&out, "%.*s\n", STR_ARG(js_raw(&doc, x)));
        else
            add_share(&t, s, &doc, x);
    }
    if (!s->json && any)
        table_print(&t, &out);
    if (!any && !s->json)
        fprintf(stderr, "nobody else may use this session; holdfast sessions share makes a code\n");
    cli_write_part(&out);
    table_release(&t);
    buf_release(&out);
    return true;
}

/* unshare */

static bool find_share(const struct sessions_share *s, struct str *ret, struct error *err)
{
    struct str name = str_of(s->cli->args[2]), json;
    struct js_doc doc;
    size_t n = 0;

    if (!read_shares(s, &json, &doc, err))
        return false;
    const struct js_node *shares = js_get(&doc, js_root(&doc), STR("shares"));
    for (const struct js_node *x = js_first(&doc, shares); x; x = js_next(&doc, shares, x)) {
        struct str id = source_text(&doc, x, "id", s->cli->mem);
        bool is_live = !source_text(&doc, x, "ended_at", s->cli->mem).n;
        if (str_eq(id, name) || (is_live && name.n >= SHARE_LEAST && str_starts(id, name))) {
            *ret = id;
            n++;
        }
    }
    if (n > 1)
        return error_set(err, ERR_BAD_INPUT, "several shares begin with \"%.*s\"; give more of it",
                         STR_ARG(str_cut(name, 64)));
    return n || error_set(err, ERR_NOT_FOUND,
                          "the session has no live share \"%.*s\"; see holdfast sessions shares",
                          STR_ARG(str_cut(name, 64)));
}

bool sessions_share_end(const struct sessions_share *s, struct error *err)
{
    struct str id = STR_NONE, json;

    if (!find_share(s, &id, err) ||
        !control_ask(s->control, "DELETE",
                     path_of(s, arena_printf(s->cli->mem, "shares/%.*s", STR_ARG(id)).p), STR_NONE,
                     s->cli->mem, &json, err))
        return false;
    if (s->json)
        return print(s, json);
    fprintf(stderr, "share %.*s is revoked; its next call is refused\n", STR_ARG(id));
    return true;
}

/* fork */

bool sessions_share_fork(const struct sessions_share *s, struct error *err)
{
    struct str json;
    struct js_doc doc;

    if (!control_ask(s->control, "POST", path_of(s, "fork"), STR_NONE, s->cli->mem, &json, err) ||
        !source_parse(json, s->cli->mem, &doc, err))
        return false;
    return print(s, s->json ? json : source_text(&doc, js_root(&doc), "session_id", s->cli->mem));
}
