/* SPDX-License-Identifier: Apache-2.0 */
/* Answers the verbs of the shared tables (store/sql.h) with PostgreSQL: adds the parameters of a
 * call, and reads and writes rows column by column. */
#include "store/postgres_impl.h"

#include "base/clock.h"

/* A text that PostgreSQL cannot store becomes the empty text, which no row has. */
static struct str storable(struct str text)
{
    return !text.p || pg_is_text(text) ? text : STR("");
}

static struct str or_empty(struct str text)
{
    return text.p ? text : STR("");
}

static void add_arg(struct pg_params *p, const struct sql_arg *a, const struct store_call *c)
{
    const void *value = sql_arg_value(a, c);
    const struct str *text = value;
    const int64_t *number = value;
    switch (a->kind) {
    case ARG_END:
        break;
    case ARG_TEXT:
        pg_text(p, *text);
        break;
    case ARG_NAME:
        pg_text(p, storable(*text));
        break;
    case ARG_FROM:
        pg_text(p, or_empty(*text));
        break;
    case ARG_RAW_TEXT:
        pg_bytes(p, *text);
        break;
    case ARG_RAW_FROM:
        pg_bytes(p, or_empty(*text));
        break;
    case ARG_UUID:
    case ARG_UUID_AFTER:
    case ARG_UUID_BEFORE:
        pg_uuid(p, *text);
        break;
    case ARG_HASH:
        pg_sha(p, *(const uint8_t *const *)value);
        break;
    case ARG_INT:
        pg_int(p, *number);
        break;
    case ARG_INT_BEFORE:
        pg_int(p, *number ? *number : INT64_MAX);
        break;
    case ARG_BITS:
        pg_int4(p, (int32_t) * (const unsigned *)value);
        break;
    case ARG_BOOL:
        pg_bool(p, *(const bool *)value);
        break;
    case ARG_INSTANT:
        pg_instant(p, *number);
        break;
    case ARG_NOW:
        pg_instant(p, clock_life_ms());
        break;
    case ARG_LIMIT:
        pg_int(p, c->limit);
        break;
    case ARG_TENANT:
        pg_text(p, c->who->tenant);
        break;
    case ARG_OWNER:
        pg_text(p, c->who->owner);
        break;
    case ARG_WIDE:
        pg_bool(p, c->who->tenant_wide);
        break;
    }
}

static void add_column(struct pg_params *p, enum column_kind kind, const void *member)
{
    const struct str *text = member;
    const int64_t *number = member;
    switch (kind) {
    case COLUMN_TEXT:
    case COLUMN_TENANT:
    case COLUMN_OWNER:
        pg_text(p, *text);
        break;
    case COLUMN_BYTES:
    case COLUMN_RAW_TEXT:
        pg_bytes(p, *text);
        break;
    case COLUMN_UUID:
        pg_uuid(p, *text);
        break;
    case COLUMN_INT:
        pg_int(p, *number);
        break;
    case COLUMN_INT32:
        pg_int4(p, *(const int *)member);
        break;
    case COLUMN_BOOL:
        pg_bool(p, *(const bool *)member);
        break;
    case COLUMN_INSTANT:
        pg_instant(p, *number);
        break;
    case COLUMN_TIME:
    case COLUMN_LAST:
        pg_time(p, *number);
        break;
    case COLUMN_SHA:
        pg_sha(p, member);
        break;
    case COLUMN_STATUS:
    case COLUMN_ORIGIN:
    case COLUMN_ROLE:
        pg_text(p, sql_enum_name(kind, member));
        break;
    }
}

void pg_row_params(struct pg_params *p, const struct row_type *type, const void *row,
                   const struct principal *who)
{
    for (size_t i = 0; i < type->n; i++) {
        const struct row_column *c = &type->columns[i];
        const void *member = (const char *)row + c->at;
        if (who && c->kind == COLUMN_TENANT)
            member = &who->tenant;
        if (who && c->kind == COLUMN_OWNER)
            member = &who->owner;
        add_column(p, c->kind, member);
    }
}

static bool read_column(struct pg_row *r, enum column_kind kind, void *member, struct error *err)
{
    switch (kind) {
    case COLUMN_TEXT:
    case COLUMN_TENANT:
    case COLUMN_OWNER:
    case COLUMN_BYTES:
    case COLUMN_RAW_TEXT:
        *(struct str *)member = pg_get_bytes(r);
        break;
    case COLUMN_UUID:
        *(struct str *)member = pg_get_uuid(r);
        break;
    case COLUMN_INT:
        *(int64_t *)member = pg_get_int(r);
        break;
    case COLUMN_INT32:
        *(int *)member = (int)pg_get_int(r);
        break;
    case COLUMN_BOOL:
        *(bool *)member = pg_get_bool(r);
        break;
    case COLUMN_INSTANT:
    case COLUMN_TIME:
    case COLUMN_LAST:
        *(int64_t *)member = pg_get_time(r);
        break;
    case COLUMN_SHA:
        pg_get_sha(r, member);
        break;
    case COLUMN_STATUS:
    case COLUMN_ORIGIN:
    case COLUMN_ROLE:
        return sql_enum_parse(kind, pg_peek_bytes(r), member, err);
    }
    return true;
}

static bool read_row(struct pg_row *r, const struct row_type *type, char *to, struct error *err)
{
    for (size_t i = 0; i < type->n; i++)
        if (!read_column(r, type->columns[i].kind, to + type->columns[i].at, err))
            return false;
    if (type->finish)
        type->finish(to);
    return true;
}

bool pg_take_rows(PGresult *res, size_t limit, struct pg_rows *rows, struct error *err)
{
    size_t n = (size_t)pq.ntuples(res) < limit ? (size_t)pq.ntuples(res) : limit;
    char *items = arena_zalloc(rows->mem, (n ? n : 1) * rows->type->size);
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        struct pg_row r = {.res = res, .mem = rows->mem, .row = (int)i};
        ok = read_row(&r, rows->type, items + i * rows->type->size, err);
    }
    pq.clear(res);
    if (ok) {
        rows->items = items;
        rows->n = n;
    }
    return ok;
}

bool pg_read_rows(struct pg_store *s, unsigned which, const struct pg_params *p,
                  struct pg_rows *rows, struct error *err)
{
    PGresult *res = NULL;
    return pg_query(s, which, p, &res, err) && pg_take_rows(res, SIZE_MAX, rows, err);
}

unsigned pg_read_params(struct pg_params *p, const struct store_call *c)
{
    const struct sql_read *read = sql_read_of(c->verb);
    for (const struct sql_arg *a = read->args; a->kind != ARG_END; a++)
        add_arg(p, a, c);
    return PG_COUNT + (unsigned)sql_statement_of(read, c);
}

bool pg_read_call(struct pg_store *s, struct store_call *c, struct error *err)
{
    const struct sql_read *read = sql_read_of(c->verb);
    enum verb_kind kind = store_verbs[c->verb].kind;
    bool limited = kind == VERB_KIND_PAGE && !read->no_page_limit;
    struct pg_rows rows = {.type = read->row, .mem = c->mem};
    struct pg_params p = {0};
    PGresult *res = NULL;
    unsigned which = pg_read_params(&p, c);
    if (!(limited ? pg_page : pg_query)(s, which, &p, &res, err) ||
        !pg_take_rows(res, kind == VERB_KIND_ROW ? 1 : SIZE_MAX, &rows, err))
        return false;
    c->rows = kind == VERB_KIND_ROW && rows.n == 0 ? NULL : rows.items;
    c->n = rows.n;
    return true;
}
