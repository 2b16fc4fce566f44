/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/mock_lines.h"

#include "base/log.h"
#include "crypto/base64.h"
#include "json/read.h"

#include <stdio.h>

#define LINE_MAX_BYTES (64u << 20)
#define WHY_NOT                                                                                    \
    "is not of an exported session; `holdfast sessions export ID -o FILE.jsonl` writes one"

void mock_lines_begin(struct mock_lines *l, struct mock *mock)
{
    *l = (struct mock_lines){.mock = mock};
    buf_init(&l->line, LINE_MAX_BYTES);
}

void mock_lines_release(struct mock_lines *l)
{
    buf_release(&l->line);
}

static struct str text_of(const struct js_doc *d, const struct js_node *object, const char *name,
                          struct arena *mem)
{
    return js_text(d, js_get(d, object, str_of(name)), mem);
}

static int64_t number_of(const struct js_doc *d, const struct js_node *object, const char *name,
                         int64_t otherwise)
{
    int64_t n = 0;

    return js_to_i64(d, js_get(d, object, str_of(name)), &n) ? n : otherwise;
}

/* The bytes of a body: a value, a text, or base64. */
static struct str bytes_of(const struct js_doc *d, const struct js_node *body, struct arena *mem)
{
    const struct js_node *json = js_get(d, body, STR("json"));
    struct str text = text_of(d, body, "text", mem), coded = text_of(d, body, "base64", mem);

    if (json)
        return js_raw(d, json);
    if (!coded.p)
        return text;
    return base64_decode(coded, mem);
}

static bool read_body(const struct js_doc *d, const struct js_node *call, const char *name,
                      struct arena *mem, struct recorded_body *ret)
{
    const struct js_node *body = js_get(d, call, str_of(name));

    ret->length = number_of(d, body, "length", -1);
    ret->bytes = bytes_of(d, body, mem);
    return recorded_state_parse(text_of(d, body, "state", mem), &ret->state) &&
           (ret->bytes.p || (ret->state != RECORDED_COMPLETE && ret->state != RECORDED_REDACTED));
}

/* The member "arguments" of the params. */
static struct str arguments_of(const struct recorded_body *params, struct arena *mem)
{
    struct js_doc d;

    if (!params->bytes.p || !js_parse(params->bytes, &js_limits_upstream, mem, &d, NULL))
        return STR_NONE;
    const struct js_node *v = js_get(&d, js_root(&d), STR("arguments"));
    return v ? js_raw(&d, v) : STR_NONE;
}

static bool read_call(const struct js_doc *d, struct arena *mem, struct recorded_call *ret)
{
    const struct js_node *call = js_root(d);

    *ret = (struct recorded_call){
        .number = number_of(d, call, "number", 0),
        .server = text_of(d, call, "server", mem),
        .method = text_of(d, call, "method", mem),
        .tool = text_of(d, call, "tool", mem),
        .outcome = text_of(d, call, "outcome", mem),
    };
    if (!recorded_kind_parse(text_of(d, call, "kind", mem), &ret->kind) ||
        !read_body(d, call, "params", mem, &ret->params) ||
        !read_body(d, call, "result", mem, &ret->result))
        return false;
    ret->arguments = arguments_of(&ret->params, mem);
    return true;
}

static bool take_session(struct mock_lines *l, const struct js_doc *d, struct arena *mem,
                         struct error *err)
{
    const struct js_node *session = js_get(d, js_root(d), STR("session"));

    if (l->has_session)
        return error_set(err, ERR_BAD_INPUT,
                         "line %lld begins a second session; a recording is one session",
                         (long long)l->number);
    l->has_session = true;
    snprintf(l->session, sizeof(l->session), "%.*s",
             STR_ARG(str_cut(text_of(d, session, "session_id", mem), sizeof(l->session) - 1)));
    return true;
}

static bool take_call(struct mock_lines *l, const struct js_doc *d, struct arena *mem,
                      struct error *err)
{
    struct recorded_call c;

    if (!l->has_session || !read_call(d, mem, &c))
        return error_set(err, ERR_BAD_INPUT, "line %lld " WHY_NOT, (long long)l->number);
    return !mock_wants(l->only, l->n_only, &c) || mock_add(l->mock, &c, err);
}

static bool take_line(struct mock_lines *l, struct str line, struct error *err)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct js_doc d;
    struct str type = STR_NONE;
    bool ok = true;

    l->number++;
    if (js_parse(line, &js_limits_upstream, mem, &d, NULL))
        type = text_of(&d, js_root(&d), "type", mem);
    if (str_eq(type, STR("session")))
        ok = take_session(l, &d, mem, err);
    else if (str_eq(type, STR("call")))
        ok = take_call(l, &d, mem, err);
    else if (str_eq(type, STR("end")) && l->has_session)
        l->has_end = true;
    else
        ok = error_set(err, ERR_BAD_INPUT, "line %lld " WHY_NOT, (long long)l->number);
    arena_free(mem);
    return ok;
}

bool mock_lines_take(struct mock_lines *l, struct str bytes, struct error *err)
{
    while (bytes.n) {
        size_t end = str_find(bytes, '\n');
        if (!buf_try_add(&l->line, bytes.p, end))
            return error_set(err, ERR_TOO_LARGE, "line %lld is longer than %u MiB",
                             (long long)l->number + 1, LINE_MAX_BYTES >> 20);
        if (end == bytes.n)
            return true;
        bool ok = !l->line.n || take_line(l, buf_str(&l->line), err);
        buf_reset(&l->line);
        if (!ok)
            return false;
        bytes = str_n(bytes.p + end + 1, bytes.n - end - 1);
    }
    return true;
}

bool mock_lines_end(struct mock_lines *l, struct error *err)
{
    if (l->line.n && !mock_lines_take(l, STR("\n"), err))
        return false;
    return l->has_end ||
           error_set(err, ERR_BAD_INPUT,
                     l->has_session ? "the recording is cut off: its last line is missing"
                                    : "it is empty; `holdfast sessions export ID -o FILE.jsonl` "
                                      "writes a recording");
}
