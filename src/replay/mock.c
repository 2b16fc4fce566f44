/* SPDX-License-Identifier: Apache-2.0 */
/* Calls are found by a key: the tool, and the digest of the arguments in one spelling. */
#include "replay/mock.h"

#include "base/map.h"
#include "config/config.h"
#include "crypto/hash.h"
#include "identity/scopes.h"
#include "json/read.h"
#include "replay/canon.h"

#include <stdio.h>
#include <stdlib.h>

const char *const mock_rule_names[] = {"exact", "again", "in order", "unknown", NULL};

struct mock_cursor {
    uint8_t *used;                      /* by call */
    size_t *next_of_tool, *next_of_key; /* positions in their lists; all before are used */
    size_t *again;                      /* by key: its next call once all were used */
};

/* Makes room for one more.  False: the mock would be too large. */
static bool grow(struct arena *mem, void **list, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return true;
    size_t more = *room ? 2 * *room : 8;
    void *fresh = arena_try_resize(mem, *list, *room * size, more * size);
    if (!fresh)
        return false;
    *list = fresh;
    *room = more;
    return true;
}

struct mock *mock_new(size_t max_bytes)
{
    struct arena *mem = arena_new(max_bytes);
    struct mock *m = arena_new_of(mem, struct mock);

    m->mem = mem;
    m->max_bytes = max_bytes;
    m->tool_at = arena_new_of(mem, struct map);
    m->key_at = arena_new_of(mem, struct map);
    return m;
}

void mock_free(struct mock *m)
{
    if (!m)
        return;
    map_release(m->tool_at);
    map_release(m->key_at);
    arena_free(m->mem);
}

/* Arguments. */

/* Holdfast takes the handle of a session out of the arguments, so the tool never saw it. */
static const struct js_node *handle_of(const struct js_doc *d)
{
    const struct js_node *key = js_get_key(d, js_root(d), STR("session_id"));

    return key && str_starts(js_raw(d, js_value_of(key)), STR("\"ses_")) ? key : NULL;
}

static void name_key(size_t tool, struct str arguments, char ret[MOCK_KEY_TEXT])
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    char hex[2 * SHA256_BYTES + 1];
    uint8_t digest[SHA256_BYTES];
    struct js_doc doc;
    struct buf text;

    buf_init(&text, SIZE_MAX / 4);
    if (arguments.p && js_parse(arguments, &js_limits_upstream, mem, &doc, NULL))
        canon_write(&doc, js_root(&doc), handle_of(&doc), &text);
    else
        buf_addz(&text, "{}");
    sha256(buf_str(&text), digest);
    hex_encode(digest, sizeof(digest), hex);
    snprintf(ret, MOCK_KEY_TEXT, "%zx/%s", tool, hex);
    buf_release(&text);
    arena_free(mem);
}

/* Adding. */

/* A position in a map, from 1. */
static size_t position_in(const struct map *map, struct str name)
{
    return (size_t)(uintptr_t)map_get(map, name);
}

static bool add_position(struct arena *mem, size_t **list, size_t *n, size_t *room, size_t position)
{
    void *grown = *list;

    if (!grow(mem, &grown, *n, room, sizeof(**list)))
        return false;
    *list = grown;
    (*list)[(*n)++] = position;
    return true;
}

static bool is_too_large(const struct mock *m, struct error *err)
{
    return error_set(err, ERR_TOO_LARGE,
                     "the recorded calls are larger than %zu MiB; choose some of their tools with "
                     "\"only\"",
                     m->max_bytes >> 20);
}

static struct str tool_name(struct str server, struct str tool, struct arena *mem)
{
    return arena_printf(mem, "%.*s/%.*s", STR_ARG(server), STR_ARG(tool));
}

static bool has_server(const struct mock *m, struct str name)
{
    for (size_t i = 0; i < m->n_tools; i++)
        if (str_eq(m->tools[i].server, name))
            return true;
    return false;
}

static bool find_or_add_tool(struct mock *m, const struct recorded_call *c, size_t *ret,
                             struct error *err)
{
    void *grown = m->tools;

    const struct mock_tool *known = mock_tool(m, c->server, c->tool);
    if (known) {
        *ret = (size_t)(known - m->tools);
        return true;
    }
    bool is_new_server = !has_server(m, c->server);
    if (m->n_tools == MOCK_TOOLS_MAX || m->n_servers + is_new_server > MOCK_SERVERS_MAX)
        return error_set(err, ERR_TOO_LARGE,
                         "the recorded calls are of more than %d servers or %d tools; choose some "
                         "of the tools with \"only\"",
                         MOCK_SERVERS_MAX, MOCK_TOOLS_MAX);
    if (!grow(m->mem, &grown, m->n_tools, &m->room_tools, sizeof(*m->tools)))
        return is_too_large(m, err);
    m->tools = grown;
    m->n_servers += is_new_server;
    *ret = m->n_tools++;
    m->tools[*ret] = (struct mock_tool){.server = arena_dup(m->mem, c->server),
                                        .name = arena_dup(m->mem, c->tool)};
    map_put(m->tool_at, tool_name(c->server, c->tool, m->mem), (void *)(uintptr_t)(*ret + 1));
    return true;
}

static bool find_or_add_key(struct mock *m, const char name[MOCK_KEY_TEXT], size_t *ret)
{
    void *grown = m->keys;

    *ret = position_in(m->key_at, str_of(name));
    if ((*ret)--)
        return true;
    struct mock_key *key = arena_try_alloc(m->mem, sizeof(*key));
    if (!key || !grow(m->mem, &grown, m->n_keys, &m->room_keys, sizeof(*m->keys)))
        return false;
    *key = (struct mock_key){0};
    memcpy(key->name, name, MOCK_KEY_TEXT);
    m->keys = grown;
    *ret = m->n_keys++;
    m->keys[*ret] = key;
    map_put(m->key_at, str_of(key->name), (void *)(uintptr_t)(*ret + 1));
    return true;
}

static bool is_known(const struct recorded_body *b)
{
    return b->state == RECORDED_COMPLETE;
}

/* Why the answer of a call cannot be given, in mem; absent: it can. */
static struct str lack_of(const struct recorded_call *c, struct arena *mem)
{
    if (str_eq(c->outcome, STR("redelivered")) || c->result.state == RECORDED_NONE)
        return arena_printf(mem, "call %lld has no answer on record (%.*s)", (long long)c->number,
                            STR_ARG(c->outcome));
    if (!is_known(&c->result))
        return arena_printf(mem, "the result of call %lld is not known: its bytes %s",
                            (long long)c->number, recorded_body_lack(&c->result, mem));
    return STR_NONE;
}

/* A result that asks the client something is a part of a conversation. */
static bool asks(struct str result)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct js_doc doc;
    bool ret = js_parse(result, &js_limits_upstream, mem, &doc, NULL) &&
               js_is(&doc, js_get(&doc, js_root(&doc), STR("resultType")), STR("input_required"));

    arena_free(mem);
    return ret;
}

/* The result as a server without that member writes it: Holdfast adds it for the clients that know
 * it. */
static struct str without_type(struct str result, struct arena *mem)
{
    struct js_doc d;

    if (!js_parse(result, &js_limits_upstream, mem, &d, NULL))
        return result;
    const struct js_node *key = js_get_key(&d, js_root(&d), STR("resultType"));
    if (!key)
        return result;
    struct buf out;
    buf_init(&out, SIZE_MAX / 4);
    buf_addc(&out, '{');
    for (const struct js_node *k = js_first(&d, js_root(&d)); k;
         k = js_next(&d, js_root(&d), js_value_of(k))) {
        if (k == key)
            continue;
        if (out.n > 1)
            buf_addc(&out, ',');
        buf_addstr(&out, str_n(d.text.p + k->start, js_value_of(k)->end - k->start));
    }
    buf_addc(&out, '}');
    struct str ret = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return ret;
}

/* False: there is no room. */
static bool copy(struct mock *m, struct str bytes, struct str *ret)
{
    char *p = arena_try_alloc(m->mem, bytes.n + 1);

    if (!p)
        return false;
    memcpy(p, bytes.p, bytes.n);
    *ret = str_n(p, bytes.n);
    return true;
}

static bool copy_answer(struct mock *m, const struct recorded_call *c, struct str *ret)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    bool is_error = str_eq(c->outcome, STR("error"));
    bool ok = copy(m, is_error ? c->result.bytes : without_type(c->result.bytes, mem), ret);

    arena_free(mem);
    return ok;
}

static bool add_answer(struct mock *m, size_t tool, const struct recorded_call *c)
{
    struct mock_call call = {.number = c->number,
                             .tool = tool,
                             .key = SIZE_MAX,
                             .is_error = str_eq(c->outcome, STR("error"))};
    struct mock_tool *t = &m->tools[tool];
    void *grown = m->calls;
    size_t position = m->n;

    if (!grow(m->mem, &grown, m->n, &m->room, sizeof(*m->calls)) ||
        !copy_answer(m, c, &call.answer))
        return false;
    m->calls = grown;
    if (is_known(&c->params)) {
        char name[MOCK_KEY_TEXT];
        name_key(tool, c->arguments, name);
        if ((c->arguments.p && !copy(m, c->arguments, &call.arguments)) ||
            !find_or_add_key(m, name, &call.key))
            return false;
        struct mock_key *key = m->keys[call.key];
        if (!add_position(m->mem, &key->calls, &key->n, &key->room, position))
            return false;
    }
    m->calls[m->n++] = call;
    return add_position(m->mem, &t->calls, &t->n, &t->room, position);
}

bool mock_wants(const struct str *only, size_t n_only, const struct recorded_call *c)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct str name = arena_printf(mem, "%.*s__%.*s", STR_ARG(c->server), STR_ARG(c->tool));
    bool ret = n_only == 0;

    for (size_t i = 0; i < n_only && !ret; i++)
        ret = scope_matches(only[i], name);
    arena_free(mem);
    return ret;
}

/* Notes the call as one that cannot be answered; only the reason of the first such call stays. */
static void add_lack(struct mock *m, struct mock_tool *t, struct str lack)
{
    t->lacking++;
    if (!t->lack.p)
        t->lack = arena_dup(m->mem, lack);
}

bool mock_add(struct mock *m, const struct recorded_call *c, struct error *err)
{
    bool is_call = c->kind == RECORDED_CALL && c->tool.n && config_is_server_name(c->server) &&
                   str_eq(c->method, STR("tools/call"));
    size_t tool = 0;

    if (!is_call)
        return true;
    if (!find_or_add_tool(m, c, &tool, err))
        return false;
    struct arena *scratch = arena_new(SIZE_MAX / 4);
    struct str lack = lack_of(c, scratch);
    if (!lack.p && !str_eq(c->outcome, STR("error")) && asks(c->result.bytes))
        lack = arena_printf(scratch, "call %lld asked its client for input", (long long)c->number);
    m->tools[tool].recorded++;
    if (lack.p)
        add_lack(m, &m->tools[tool], lack);
    arena_free(scratch);
    return lack.p || add_answer(m, tool, c) || is_too_large(m, err);
}

struct mock_tool *mock_tool(const struct mock *m, struct str server, struct str name)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    size_t position = position_in(m->tool_at, tool_name(server, name, mem));

    arena_free(mem);
    return position ? &m->tools[position - 1] : NULL;
}

/* Matching. */

struct mock_cursor *mock_cursor_new(const struct mock *m)
{
    struct mock_cursor *c = xcalloc(1, sizeof(*c));

    c->used = xcalloc(m->n + 1, sizeof(*c->used));
    c->next_of_tool = xcalloc(m->n_tools + 1, sizeof(*c->next_of_tool));
    c->next_of_key = xcalloc(m->n_keys + 1, sizeof(*c->next_of_key));
    c->again = xcalloc(m->n_keys + 1, sizeof(*c->again));
    return c;
}

void mock_cursor_free(void *cursor)
{
    struct mock_cursor *c = cursor;

    if (!c)
        return;
    free(c->used);
    free(c->next_of_tool);
    free(c->next_of_key);
    free(c->again);
    free(c);
}

/* The oldest of a list that was not used; NULL: all were.  Uses it. */
static const struct mock_call *take(const struct mock *m, struct mock_cursor *c, const size_t *list,
                                    size_t n, size_t *next)
{
    while (*next < n && c->used[list[*next]])
        ++*next;
    if (*next == n)
        return NULL;
    c->used[list[*next]] = 1;
    return &m->calls[list[*next]];
}

const struct mock_call *mock_match(const struct mock *m, struct mock_cursor *cursor,
                                   const struct mock_tool *tool, struct str arguments,
                                   enum mock_rule *ret_rule)
{
    size_t t = (size_t)(tool - m->tools), at;
    const struct mock_call *found;
    char name[MOCK_KEY_TEXT];

    name_key(t, arguments, name);
    at = position_in(m->key_at, str_of(name));
    if (at) {
        const struct mock_key *key = m->keys[--at];
        found = take(m, cursor, key->calls, key->n, &cursor->next_of_key[at]);
        *ret_rule = found ? MOCK_EXACT : MOCK_AGAIN;
        return found ? found : &m->calls[key->calls[cursor->again[at]++ % key->n]];
    }
    found = take(m, cursor, tool->calls, tool->n, &cursor->next_of_tool[t]);
    *ret_rule = found ? MOCK_IN_ORDER : MOCK_UNKNOWN;
    return found;
}
