/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of servers, and statistics of servers, in the memory store.  The caller of a verb holds the
 * lock; reads take it. */
#include "store/memory_impl.h"

#include <stdlib.h>

static const size_t texts[] = {
    offsetof(struct tool_row, server),
    offsetof(struct tool_row, name),
    offsetof(struct tool_row, definition),
    offsetof(struct tool_row, approved_definition),
};

static struct tool_row *find(struct memory_store *s, const struct tool_row *named)
{
    for (size_t i = 0; i < s->n_tools; i++)
        if (str_eq(s->tools[i].server, named->server) && str_eq(s->tools[i].name, named->name))
            return &s->tools[i];
    return NULL;
}

static bool is_approved(const struct tool_row *row)
{
    static const uint8_t none[sizeof(row->approved)];
    return memcmp(row->approved, none, sizeof(none)) != 0;
}

static enum verdict tool_seen(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    struct tool_row *row = find(s, op->tool);
    (void)now_ms;
    if (!row) {
        s->tools = mem_grow(s->tools, s->n_tools, &s->cap_tools, sizeof(*s->tools));
        row = &s->tools[s->n_tools++];
        *row = *op->tool;
        row->approved_definition = is_approved(row) ? row->definition : STR_NONE;
        mem_copy_texts(s->mem, row, texts, countof(texts));
        return VERDICT_OK;
    }
    bool differs = memcmp(row->digest, op->tool->digest, sizeof(row->digest)) != 0;
    if (differs)
        row->changed_ms = op->tool->changed_ms;
    memcpy(row->digest, op->tool->digest, sizeof(row->digest));
    if (differs || op->tool->definition.p)
        row->definition = arena_dup(s->mem, op->tool->definition);
    row->gone_ms = op->tool->gone_ms;
    return VERDICT_OK;
}

static enum verdict tool_approve(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    struct tool_row *row = find(s, op->tool);
    (void)now_ms;
    if (!row)
        return VERDICT_MISSING;
    if (memcmp(row->digest, op->tool->digest, sizeof(row->digest)) != 0)
        return VERDICT_STALE;
    memcpy(row->approved, row->digest, sizeof(row->approved));
    row->approved_definition = row->definition;
    row->approved_ms = op->tool->approved_ms;
    return VERDICT_OK;
}

static int order(struct str server, struct str name, const struct tool_row *row)
{
    int servers = str_cmp(row->server, server);
    return servers ? servers : str_cmp(row->name, name);
}

static int by_name(const void *a, const void *b)
{
    const struct tool_row *other = b;
    return order(other->server, other->name, a);
}

static bool is_wanted(const struct tool_row *row, const struct tool_filter *filter)
{
    struct str server = filter->after_server.p ? filter->after_server : STR("");
    struct str name = filter->after.p ? filter->after : STR("");
    return (!filter->server.p || str_eq(row->server, filter->server)) &&
           (!filter->name.p || str_eq(row->name, filter->name)) && order(server, name, row) > 0;
}

static bool tools_page(struct store *store, struct store_call *c, struct error *err)
{
    const struct tool_filter *filter = c->filter;
    struct memory_store *s = mem_of(store);
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    struct tool_row *rows = arena_zalloc(c->mem, (s->n_tools + 1) * sizeof(*rows));
    for (size_t i = 0; i < s->n_tools; i++) {
        if (!is_wanted(&s->tools[i], filter))
            continue;
        rows[n] = s->tools[i];
        if (!filter->with_definitions)
            rows[n].definition = rows[n].approved_definition = STR_NONE;
        mem_copy_texts(c->mem, &rows[n++], texts, countof(texts));
    }
    pthread_mutex_unlock(&s->lock);
    qsort(rows, n, sizeof(*rows), by_name);
    c->rows = rows;
    c->n = n < c->limit ? n : c->limit;
    return true;
}

/* Servers. */

static const size_t server_texts[] = {
    offsetof(struct server_row, name),
    offsetof(struct server_row, last_error),
};

static enum verdict server_count(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    const struct server_row *added = op->server;
    struct server_row *row = NULL;
    (void)now_ms;
    for (size_t i = 0; i < s->n_servers && !row; i++)
        if (str_eq(s->servers[i].name, added->name))
            row = &s->servers[i];
    if (!row) {
        s->servers = mem_grow(s->servers, s->n_servers, &s->cap_servers, sizeof(*s->servers));
        row = &s->servers[s->n_servers++];
        *row = *added;
        mem_copy_texts(s->mem, row, server_texts, countof(server_texts));
        return VERDICT_OK;
    }
    row->calls += added->calls;
    row->failures += added->failures;
    if (added->last_failed_ms > row->last_failed_ms) {
        row->last_failed_ms = added->last_failed_ms;
        row->last_error = arena_dup(s->mem, added->last_error);
    }
    if (added->last_ok_ms > row->last_ok_ms)
        row->last_ok_ms = added->last_ok_ms;
    return VERDICT_OK;
}

static int servers_by_name(const void *a, const void *b)
{
    return str_cmp(((const struct server_row *)a)->name, ((const struct server_row *)b)->name);
}

static bool servers_page(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    struct server_row *rows = arena_zalloc(c->mem, (s->n_servers + 1) * sizeof(*rows));
    for (size_t i = 0; i < s->n_servers; i++)
        if (!c->after.p || str_cmp(s->servers[i].name, c->after) > 0) {
            rows[n] = s->servers[i];
            mem_copy_texts(c->mem, &rows[n++], server_texts, countof(server_texts));
        }
    pthread_mutex_unlock(&s->lock);
    qsort(rows, n, sizeof(*rows), servers_by_name);
    c->rows = rows;
    c->n = n < c->limit ? n : c->limit;
    return true;
}

const struct mem_op mem_tool_ops[] = {
    {OP_TOOL_SEEN, tool_seen},
    {OP_TOOL_APPROVE, tool_approve},
    {OP_SERVER_COUNT, server_count},
    {0},
};

const struct verb_handler mem_tool_verbs[] = {
    {VERB_TOOLS_PAGE, tools_page},
    {VERB_SERVERS_PAGE, servers_page},
    {0},
};
