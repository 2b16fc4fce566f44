/* SPDX-License-Identifier: Apache-2.0 */
/* Answers the verbs of the shared tables (store/sql.h) with SQLite: binds the parameters of a call,
 * and reads and writes rows column by column. */
#include "store/sqlite_impl.h"

#include "base/clock.h"

/* Room for this many rows at first. */
#define FIRST_ROWS 8

static void bind_arg(struct sq_bind *b, const struct sql_arg *a, const struct store_call *c)
{
    const void *value = sql_arg_value(a, c);
    const struct str *text = value;
    switch (a->kind) {
    case ARG_END:
        break;
    case ARG_TEXT:
    case ARG_NAME:
    case ARG_RAW_TEXT:
    case ARG_UUID:
        sq_text(b, *text);
        break;
    case ARG_FROM:
    case ARG_RAW_FROM:
    case ARG_UUID_AFTER:
        sq_text(b, text->p ? *text : STR(""));
        break;
    case ARG_UUID_BEFORE:
        sq_text(b, text->p ? *text : STR("\x7f")); /* sorts after every UUID */
        break;
    case ARG_HASH:
        sq_blob(b, str_n(*(const char *const *)value, 32));
        break;
    case ARG_INT:
    case ARG_INSTANT:
        sq_int(b, *(const int64_t *)value);
        break;
    case ARG_INT_BEFORE:
        sq_int(b, *(const int64_t *)value ? *(const int64_t *)value : INT64_MAX);
        break;
    case ARG_BITS:
        sq_int(b, *(const unsigned *)value);
        break;
    case ARG_BOOL:
        sq_int(b, *(const bool *)value);
        break;
    case ARG_NOW:
        sq_int(b, clock_life_ms());
        break;
    case ARG_LIMIT:
        sq_int(b, c->limit);
        break;
    case ARG_TENANT:
        sq_text(b, c->who->tenant);
        break;
    case ARG_OWNER:
        sq_text(b, c->who->owner);
        break;
    case ARG_WIDE:
        sq_int(b, c->who->tenant_wide);
        break;
    }
}

static void bind_column(struct sq_bind *b, enum column_kind kind, const void *member)
{
    switch (kind) {
    case COLUMN_TEXT:
    case COLUMN_RAW_TEXT:
    case COLUMN_UUID:
    case COLUMN_TENANT:
    case COLUMN_OWNER:
        sq_text(b, *(const struct str *)member);
        break;
    case COLUMN_BYTES:
        sq_blob(b, *(const struct str *)member);
        break;
    case COLUMN_INT:
    case COLUMN_INSTANT:
    case COLUMN_LAST:
        sq_int(b, *(const int64_t *)member);
        break;
    case COLUMN_TIME:
        sq_time(b, *(const int64_t *)member);
        break;
    case COLUMN_INT32:
        sq_int(b, *(const int *)member);
        break;
    case COLUMN_BOOL:
        sq_int(b, *(const bool *)member);
        break;
    case COLUMN_SHA:
        sq_blob(b, str_n(member, 32));
        break;
    case COLUMN_STATUS:
    case COLUMN_ORIGIN:
    case COLUMN_ROLE:
        sq_text(b, sql_enum_name(kind, member));
        break;
    }
}

void sq_bind_row(struct sq_bind *b, const struct row_type *type, const void *row,
                 const struct principal *who)
{
    for (size_t i = 0; i < type->n; i++) {
        const struct row_column *c = &type->columns[i];
        const void *member = (const char *)row + c->at;
        if (who && c->kind == COLUMN_TENANT)
            member = &who->tenant;
        if (who && c->kind == COLUMN_OWNER)
            member = &who->owner;
        bind_column(b, c->kind, member);
    }
}

static bool read_column(struct sq_row *r, enum column_kind kind, void *member, struct error *err)
{
    switch (kind) {
    case COLUMN_TEXT:
    case COLUMN_RAW_TEXT:
    case COLUMN_UUID:
    case COLUMN_TENANT:
    case COLUMN_OWNER:
    case COLUMN_BYTES:
        *(struct str *)member = sq_get_bytes(r);
        break;
    case COLUMN_INT:
    case COLUMN_INSTANT:
    case COLUMN_LAST:
    case COLUMN_TIME:
        *(int64_t *)member = sq_get_int(r);
        break;
    case COLUMN_INT32:
        *(int *)member = (int)sq_get_int(r);
        break;
    case COLUMN_BOOL:
        *(bool *)member = sq_get_int(r);
        break;
    case COLUMN_SHA:
        sq_get_sha(r, member);
        break;
    case COLUMN_STATUS:
    case COLUMN_ORIGIN:
    case COLUMN_ROLE:
        return sql_enum_parse(kind, sq_peek_bytes(r), member, err);
    }
    return true;
}

static bool read_row(struct sq_row *r, const struct row_type *type, char *to, struct error *err)
{
    for (size_t i = 0; i < type->n; i++)
        if (!read_column(r, type->columns[i].kind, to + type->columns[i].at, err))
            return false;
    if (type->finish)
        type->finish(to);
    return true;
}

/* Makes room for one more row after `n`. */
static void grow(struct sq_rows *rows, size_t *cap)
{
    if (rows->n < *cap)
        return;
    char *more = arena_zalloc(rows->mem, 2 * *cap * rows->type->size);
    memcpy(more, rows->items, *cap * rows->type->size);
    rows->items = more;
    *cap *= 2;
}

bool sq_read_rows(struct sqlite_store *s, sqlite3_stmt *st, size_t limit, struct sq_rows *rows,
                  struct error *err)
{
    size_t cap = limit < FIRST_ROWS ? limit : FIRST_ROWS;
    rows->items = arena_zalloc(rows->mem, cap * rows->type->size);
    for (bool row = true; rows->n < limit; rows->n++) {
        if (!sq_step(s, st, &row, err))
            return false;
        if (!row)
            break;
        grow(rows, &cap);
        struct sq_row r = {.st = st, .mem = rows->mem};
        if (!read_row(&r, rows->type, (char *)rows->items + rows->n * rows->type->size, err)) {
            sq_reset(st);
            return false;
        }
    }
    sq_reset(st);
    return true;
}

bool sq_read_call(struct sqlite_store *s, struct store_call *c, struct error *err)
{
    const struct sql_read *read = sql_read_of(c->verb);
    enum verb_kind kind = store_verbs[c->verb].kind;
    sqlite3_stmt *st = sq_prepare(s, SQ_COUNT + (unsigned)sql_statement_of(read, c), err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    for (const struct sql_arg *a = read->args; a->kind != ARG_END; a++)
        bind_arg(&b, a, c);
    struct sq_rows rows = {.type = read->row, .mem = c->mem};
    size_t limit = kind == VERB_KIND_ROW ? 1 : kind == VERB_KIND_PAGE ? c->limit : SIZE_MAX;
    if (kind == VERB_KIND_PAGE && !read->no_page_limit)
        sq_page_begin(s);
    bool ok = sq_read_rows(s, st, limit, &rows, err);
    sq_page_end(s);
    if (!ok)
        return false;
    c->rows = kind == VERB_KIND_ROW && rows.n == 0 ? NULL : rows.items;
    c->n = rows.n;
    return true;
}
