/* SPDX-License-Identifier: Apache-2.0 */
/* /sessions/{id}/context is the document itself.  Its ETag is its version, "0" before the first
 * write.  PUT replaces the document; an existing document is replaced only with If-Match.  PATCH is
 * a merge patch.  With If-Match, a PATCH of another version is refused; without it, a PATCH that
 * lost a race is retried a limited number of times.  The aliases under /context wrap the document,
 * as edge clients expect. */
#include "api/bodies.h"
#include "api/tags.h"

#include "base/clock.h"

#include <stdio.h>

static int64_t version_of(const struct registry_call *reg)
{
    return reg->context ? reg->context->version : 0;
}

static struct str document_of(const struct registry_call *reg)
{
    return reg->context ? reg->context->document : STR("{}");
}

static struct str tag_line(struct api_call *c, int64_t version)
{
    return arena_printf(c->mem, "ETag: \"%lld\"\r\n", (long long)version);
}

static void on_context(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);

    if (reg->result != REGISTRY_OK) {
        api_refuse_result(c);
        return;
    }
    struct str known = http_header_get(c->http->head, STR("if-none-match"));
    struct str tag = arena_printf(c->mem, "\"%lld\"", (long long)version_of(reg));
    api_reply(c, known.p && tags_have(known, tag) ? 304 : 200, tag_line(c, version_of(reg)),
              document_of(reg));
}

void api_get_context(struct api_call *c)
{
    api_session(c, on_context);
    c->reg.reach = REACH_READ;
    registry_context(c->sv->registry, &c->reg);
}

static void on_written(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);

    if (reg->result == REGISTRY_OK)
        api_reply(c, 200, tag_line(c, version_of(reg)), document_of(reg));
    else
        api_refuse_result(c);
}

/* The version in If-Match.  false: If-Match is not a tag of ours, and was refused as stale. */
static bool version_wanted(struct api_call *c, int64_t if_absent, int64_t *ret)
{
    struct str header = http_header_get(c->http->head, STR("if-match"));

    *ret = if_absent;
    if (!header.p || str_eq(header, STR("*")))
        return true;
    if (session_tag_version(header, ret))
        return true;
    c->reg.result = REGISTRY_STALE;
    api_refuse_result(c);
    return false;
}

/* If-Match lists several tags: the current version has to be read to see whether one matches. */
struct choosing {
    enum context_change how;
    struct str if_match;
};

static void on_to_choose(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);
    const struct choosing *k = c->args;
    int64_t version;

    if (reg->result == REGISTRY_OK && !tags_match(k->if_match, version_of(reg), &version))
        reg->result = REGISTRY_STALE;
    if (reg->result != REGISTRY_OK) {
        api_refuse_result(c);
        return;
    }
    api_session(c, on_written);
    c->reg.reach = REACH_USE;
    registry_context_change(c->sv->registry, &c->reg, k->how, js_raw(&c->doc, js_root(&c->doc)),
                            version);
}

static bool is_list(struct api_call *c, enum context_change how)
{
    struct str header = http_header_get(c->http->head, STR("if-match"));

    if (!header.p || str_find(header, ',') == header.n)
        return false;
    struct choosing *k = arena_new_of(c->mem, struct choosing);
    *k = (struct choosing){how, header};
    c->args = k;
    api_session(c, on_to_choose);
    c->reg.reach = REACH_USE;
    registry_context(c->sv->registry, &c->reg);
    return true;
}

static bool check_document(struct api_call *c)
{
    if (js_type_is(js_root(&c->doc), JS_OBJECT) && c->http->body.n <= CONTEXT_BYTES_MAX)
        return true;
    if (c->http->body.n > CONTEXT_BYTES_MAX)
        api_refuse(c, ERR_TOO_LARGE, "a context holds at most 1 MiB of JSON; send less");
    else
        api_refuse(c, ERR_BAD_INPUT, "a context is a JSON object; send one");
    return false;
}

static void on_put_unguarded(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);

    if (reg->result == REGISTRY_STALE)
        api_refuse(c, ERR_PRECONDITION_MISSING,
                   "there is a context already; read it and send its ETag as If-Match");
    else
        on_written(reg);
}

void api_put_context(struct api_call *c)
{
    bool is_guarded = http_header_get(c->http->head, STR("if-match")).p != NULL;
    bool is_any = str_eq(http_header_get(c->http->head, STR("if-match")), STR("*"));
    int64_t version;

    if (!check_document(c) || is_list(c, CONTEXT_REPLACE) ||
        !version_wanted(c, is_any ? -1 : 0, &version))
        return;
    api_session(c, is_guarded || http_header_get(c->http->head, STR("if-none-match")).p
                       ? on_written
                       : on_put_unguarded);
    c->reg.reach = REACH_USE;
    registry_context_change(c->sv->registry, &c->reg, CONTEXT_REPLACE,
                            js_raw(&c->doc, js_root(&c->doc)), version);
}

void api_patch_context(struct api_call *c)
{
    int64_t version;

    if (!check_document(c) || is_list(c, CONTEXT_MERGE) || !version_wanted(c, -1, &version))
        return;
    api_session(c, on_written);
    c->reg.reach = REACH_USE;
    registry_context_change(c->sv->registry, &c->reg, CONTEXT_MERGE,
                            js_raw(&c->doc, js_root(&c->doc)), version);
}

/* Aliases. */

static void reply_wrapped(struct api_call *c, const struct registry_call *reg)
{
    api_reply(
        c, 200, tag_line(c, version_of(reg)),
        arena_printf(c->mem, "{\"success\":true,\"context\":%.*s}", STR_ARG(document_of(reg))));
}

static void on_wrapped(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);

    if (reg->result == REGISTRY_OK)
        reply_wrapped(c, reg);
    else
        api_refuse_result(c);
}

void api_get_context_alias(struct api_call *c)
{
    api_session(c, on_wrapped);
    c->reg.reach = REACH_READ;
    registry_context(c->sv->registry, &c->reg);
}

void api_put_context_alias(struct api_call *c)
{
    struct context_alias_body *b = arena_new_of(c->mem, struct context_alias_body);

    if (!api_bind(c, js_root(&c->doc), &body_context_put_alias, b, NULL, NULL))
        return;
    api_session(c, on_wrapped);
    c->reg.reach = REACH_USE;
    registry_context_change(c->sv->registry, &c->reg, CONTEXT_REPLACE, b->context, -1);
}

void api_patch_context_alias(struct api_call *c)
{
    struct context_alias_body *b = arena_new_of(c->mem, struct context_alias_body);

    if (!api_bind(c, js_root(&c->doc), &body_context_patch_alias, b, NULL, NULL))
        return;
    api_session(c, on_wrapped);
    c->reg.reach = REACH_USE;
    registry_context_change(c->sv->registry, &c->reg, CONTEXT_APPEND, b->append, -1);
}
