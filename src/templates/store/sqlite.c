/* SPDX-License-Identifier: Apache-2.0 */
/* Templates in SQLite. */
#include "templates/store/impl.h"

#include "store/sqlite_impl.h"

enum sq_template_statement {
    SQ_TEMPLATE_NEWEST = SQ_COUNT + TEMPLATE_STATEMENTS,
    SQ_TEMPLATE_NAMES,
    SQ_TEMPLATE_ADD,
    SQ_TEMPLATE_REMOVE,
};

static const struct sql_text texts[] = {
    {SQ_TEMPLATE_NEWEST, "SELECT version, spec = ?3 FROM session_templates WHERE tenant_id = ?1 "
                         "AND name = ?2 ORDER BY version DESC LIMIT 1"},
    {SQ_TEMPLATE_NAMES,
     "SELECT count(*) FROM session_templates WHERE tenant_id = ?1 AND version = 1"},
    {SQ_TEMPLATE_ADD, "INSERT INTO session_templates (tenant_id, name, version, created_at, "
                      "created_by, spec) VALUES (?,?,?,?,?,?)"},
    {SQ_TEMPLATE_REMOVE, "DELETE FROM session_templates WHERE tenant_id = ?1 AND name = ?2"},
    {0},
};

/* *ret_version is 0 when there is no such template. */
static bool newest(struct sqlite_store *s, const struct template_row *row, int64_t *ret_version,
                   bool *ret_same, struct error *err)
{
    bool found = false;
    sqlite3_stmt *st = sq_prepare(s, SQ_TEMPLATE_NEWEST, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, row->tenant);
    sq_text(&b, row->name);
    sq_text(&b, row->spec);
    if (!sq_step(s, st, &found, err))
        return false;
    struct sq_row r = {.st = st};
    *ret_version = found ? sq_get_int(&r) : 0;
    *ret_same = found && sq_get_int(&r);
    sq_reset(st);
    return true;
}

static bool names(struct sqlite_store *s, struct str tenant, int64_t *ret, struct error *err)
{
    bool found = false;
    sqlite3_stmt *st = sq_prepare(s, SQ_TEMPLATE_NAMES, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, tenant);
    if (!sq_step(s, st, &found, err))
        return false;
    struct sq_row r = {.st = st};
    *ret = found ? sq_get_int(&r) : 0;
    sq_reset(st);
    return true;
}

static bool add(struct sqlite_store *s, const struct template_row *row, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_TEMPLATE_ADD, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, row->tenant);
    sq_text(&b, row->name);
    sq_int(&b, row->version);
    sq_int(&b, row->created_ms);
    sq_text(&b, row->created_by);
    sq_text(&b, row->spec);
    return sq_run(s, st, err);
}

static bool template_put(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    struct template_change *c = op->row;
    int64_t version = 0, count = 0;
    bool is_same = false;
    if (!newest(batch->s, &c->row, &version, &is_same, err))
        return false;
    if (!version && !names(batch->s, c->row.tenant, &count, err))
        return false;
    if (c->expected >= 0 && c->expected != version)
        op->verdict = VERDICT_STALE;
    else if (!is_same && (count >= TEMPLATES_MAX || version >= TEMPLATE_VERSIONS_MAX))
        op->verdict = VERDICT_LIMIT;
    else
        op->verdict = VERDICT_OK;
    if (op->verdict != VERDICT_OK)
        return true;
    c->row.version = version + !is_same;
    return is_same || add(batch->s, &c->row, err);
}

static bool template_remove(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct template_change *c = op->row;
    int64_t version = 0;
    bool is_same = false;
    if (!newest(batch->s, &c->row, &version, &is_same, err))
        return false;
    op->verdict = !version                                     ? VERDICT_MISSING
                  : c->expected >= 0 && c->expected != version ? VERDICT_STALE
                                                               : VERDICT_OK;
    if (op->verdict != VERDICT_OK)
        return true;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_TEMPLATE_REMOVE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, c->row.tenant);
    sq_text(&b, c->row.name);
    return sq_run(batch->s, st, err);
}

static const struct sq_op ops[] = {
    {OP_TEMPLATE_PUT, template_put},
    {OP_TEMPLATE_REMOVE, template_remove},
    {0},
};

static const struct verb_handler verbs[] = {{0}};

const struct sqlite_family template_sqlite = {.texts = texts, .ops = ops, .verbs = verbs};
