/* SPDX-License-Identifier: Apache-2.0 */
/* The members of the line of a call, as jsonl.c writes them. */
#include "export/line.h"

#include "audit/event_id.h"
#include "base/clock.h"
#include "crypto/hash.h"
#include "export/read.h"
#include "recording/bytes.h"

static bool read_id(const struct js_doc *doc, const char *name, struct arena *mem, int64_t *ret)
{
    const struct js_node *v = js_get(doc, js_root(doc), str_of(name));

    return !v || (event_id_parse(js_text(doc, v, mem), ret) && *ret > 0);
}

static bool read_count(const struct js_doc *doc, const struct js_node *object, const char *name,
                       int64_t *ret)
{
    const struct js_node *v = js_get(doc, object, str_of(name));

    return !v || (js_to_i64(doc, v, ret) && *ret >= 0);
}

static bool has_bytes(enum recorded_state state)
{
    return state == RECORDED_COMPLETE || state == RECORDED_REDACTED || state == RECORDED_CUT;
}

static bool read_body(const struct js_doc *doc, const char *name, struct arena *mem,
                      struct recorded_body *ret)
{
    const struct js_node *body = js_get(doc, js_root(doc), str_of(name)),
                         *sha = js_get(doc, body, STR("sha256"));

    ret->length = -1;
    return recorded_state_parse(js_text(doc, js_get(doc, body, STR("state")), mem), &ret->state) &&
           read_count(doc, body, "length", &ret->length) &&
           (!sha || hex_decode(js_text(doc, sha, mem), ret->sha, sizeof(ret->sha))) &&
           recorded_bytes_read(doc, body, mem, &ret->bytes) &&
           (ret->bytes.p != NULL) == has_bytes(ret->state);
}

static bool read_texts(const struct js_doc *doc, struct arena *mem, struct recorded_call *c)
{
    const struct {
        const char *name;
        struct str *ret;
    } texts[] = {
        {"owner", &c->owner},     {"transport", &c->transport}, {"carrier", &c->carrier},
        {"client", &c->client},   {"server", &c->server},       {"method", &c->method},
        {"tool", &c->tool},       {"tool_id", &c->tool_id},     {"era", &c->era},
        {"outcome", &c->outcome}, {"error", &c->error},
    };

    for (size_t i = 0; i < countof(texts); i++)
        if (!recorded_text_read(doc, js_root(doc), texts[i].name, mem, texts[i].ret) ||
            texts[i].ret->n > EXPORT_TEXT_MAX)
            return false;
    return c->outcome.n > 0;
}

bool export_parse_call(const struct js_doc *doc, struct arena *mem, struct recorded_call *ret)
{
    const struct js_node *root = js_root(doc);

    *ret = (struct recorded_call){.duration_us = -1, .tokens = -1};
    return js_to_i64(doc, js_get(doc, root, STR("number")), &ret->number) &&
           read_id(doc, "id", mem, &ret->origin_id) && read_id(doc, "parent", mem, &ret->parent) &&
           recorded_kind_parse(js_text(doc, js_get(doc, root, STR("kind")), mem), &ret->kind) &&
           clock_parse(js_text(doc, js_get(doc, root, STR("at")), mem), &ret->at_ms) &&
           ret->at_ms > 0 && read_count(doc, root, "duration_us", &ret->duration_us) &&
           read_count(doc, root, "tokens", &ret->tokens) && read_texts(doc, mem, ret) &&
           read_body(doc, "params", mem, &ret->params) &&
           read_body(doc, "result", mem, &ret->result);
}
