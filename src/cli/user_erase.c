/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/user_erase.h"

#include "cli/confirm.h"
#include "json/write.h"

#include <poll.h>
#include <stdio.h>

#define ERASURES "/api/v1/audit/erasures"
#define PAUSE_MS 20
#define TELL_EVERY 500 /* pauses */

struct erase {
    struct cli *cli;
    struct str tenant, name;
    struct source *source;
    struct buf *out;
    bool json;
};

static struct str body_of(struct erase *x, bool dry_run)
{
    struct buf out;
    struct js_writer w;

    buf_init(&out, 64 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "username", x->name);
    js_kv_string(&w, "tenant", x->tenant);
    js_kv_string(&w, "reason", str_of(cli_flag(x->cli, "--reason")));
    if (dry_run)
        js_kv_bool(&w, "dry_run", true);
    js_object_end(&w);
    struct str body = arena_dup(x->cli->mem, buf_str(&out));
    buf_release(&out);
    return body;
}

static bool post(struct erase *x, bool dry_run, struct js_doc *ret, struct error *err)
{
    struct str json;

    return control_ask(x->source->control, "POST", STR(ERASURES), body_of(x, dry_run), x->cli->mem,
                       &json, err) &&
           source_parse(json, x->cli->mem, ret, err);
}

static int64_t number(const struct js_doc *doc, const char *name)
{
    int64_t value = 0;
    const struct js_node *node = js_get(doc, js_root(doc), str_of(name));

    return node && js_to_i64(doc, node, &value) ? value : 0;
}

/* "3 sessions" */
static struct str count_of(struct erase *x, const struct js_doc *doc, const char *name,
                           const char *word)
{
    int64_t n = number(doc, name);

    return arena_printf(x->cli->mem, "%lld %s%s", (long long)n, word, n == 1 ? "" : "s");
}

static void show_count(struct erase *x, const struct js_doc *doc)
{
    struct str sessions = count_of(x, doc, "sessions", "session"),
               calls = count_of(x, doc, "calls", "call"), keys = count_of(x, doc, "keys", "key"),
               sign_ins = count_of(x, doc, "sign_ins", "sign-in");

    fprintf(stderr, "user %.*s has %.*s with %.*s, %.*s, %.*s\n", STR_ARG(x->name),
            STR_ARG(sessions), STR_ARG(calls), STR_ARG(keys), STR_ARG(sign_ins));
    if (number(doc, "held_sessions"))
        fprintf(stderr, "%lld held sessions and the bodies of their calls stay\n",
                (long long)number(doc, "held_sessions"));
    if (js_type_is(js_get(doc, js_root(doc), STR("held")), JS_TRUE))
        fprintf(stderr, "the user is held, so nothing can be removed\n");
}

static bool ask(struct erase *x, bool *ret_yes, struct error *err)
{
    fprintf(stderr, "The bodies of these calls and every name of the person are removed, and "
                    "nothing brings them back.\n");
    return confirm(x->cli, "Erase this person?", "to erase a person", false, ret_yes, err);
}

/* The daemon erases by itself; without one, this process does while it asks. */
static bool await(struct erase *x, struct str id, struct js_doc *ret, struct error *err)
{
    struct str path = arena_printf(x->cli->mem, ERASURES "/%.*s", STR_ARG(id));

    for (unsigned i = 1;; i++) {
        struct arena *mem = arena_new(1 << 20);
        struct str json;
        struct js_doc doc;
        bool ok = control_get(x->source->control, path, mem, &json, err) &&
                  source_parse(json, mem, &doc, err);
        bool done = ok && str_eq(source_text(&doc, js_root(&doc), "state", mem), STR("done"));
        if (done)
            ok = source_parse(arena_dup(x->cli->mem, json), x->cli->mem, ret, err);
        arena_free(mem);
        if (!ok || done)
            return ok;
        if (i % TELL_EVERY == 0)
            fprintf(stderr, "still removing; it goes on if this command is interrupted\n");
        (void)poll(NULL, 0, PAUSE_MS);
    }
}

static void show_done(struct erase *x, const struct js_doc *doc)
{
    if (x->json) {
        buf_addstr(x->out, js_raw(doc, js_root(doc)));
        buf_addc(x->out, '\n');
        return;
    }
    fprintf(stderr, "erased: %lld bodies and %lld sessions were removed; on record as user %.*s\n",
            (long long)number(doc, "bodies"), (long long)number(doc, "sessions"),
            STR_ARG(source_text(doc, js_root(doc), "user_id", x->cli->mem)));
    if (number(doc, "held_sessions"))
        fprintf(stderr,
                "%lld held sessions were left; release them (`holdfast audit holds`) and erase "
                "the user again\n",
                (long long)number(doc, "held_sessions"));
}

static bool erase(struct erase *x, struct error *err)
{
    struct js_doc doc;

    return post(x, false, &doc, err) &&
           await(x, source_text(&doc, js_root(&doc), "id", x->cli->mem), &doc, err) &&
           (show_done(x, &doc), true);
}

bool user_erase(struct cli *cli, struct str tenant, struct str name, struct source *source,
                struct buf *out, struct error *err)
{
    struct erase x = {cli, tenant, name, source, out, cli_flag(cli, "--json")};
    bool dry_run = cli_flag(cli, "--dry-run"), yes = false;
    struct js_doc doc;

    if (!source_open(cli, SOURCE_CHANGES, source, err) || !post(&x, true, &doc, err))
        return false;
    if (dry_run && x.json) {
        buf_addstr(out, js_raw(&doc, js_root(&doc)));
        buf_addc(out, '\n');
        return true;
    }
    if (!x.json)
        show_count(&x, &doc);
    if (dry_run)
        return true;
    if (js_type_is(js_get(&doc, js_root(&doc), STR("held")), JS_TRUE))
        return error_set(
            err, ERR_CONFLICT,
            "user %.*s is held, so nothing is removed; see `holdfast audit holds`, and "
            "release the hold first",
            STR_ARG(name));
    return ask(&x, &yes, err) && (!yes || erase(&x, err));
}
