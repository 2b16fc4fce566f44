/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the reads of the tables (sql_*.c) by their verb, and makes their statements. */
#include "store/sql.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/buf.h"
#include "store/family.h"

static const struct sql_read *reads[VERB_COUNT];
static char *statements[SQL_DIALECTS][SQL_STATEMENTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

char *sql_expand(const char *text, const struct row_type *row, enum sql_dialect dialect)
{
    struct buf out;
    const char *at = strchr(text, '@');
    buf_init(&out, 1 << 20);
    buf_addstr(&out, str_n(text, at ? (size_t)(at - text) : strlen(text)));
    for (size_t i = 0; at && i < row->n; i++) {
        const struct row_column *c = &row->columns[i];
        bool own = dialect == SQL_POSTGRES && c->postgres;
        buf_addstr(&out, i ? STR(", ") : STR(""));
        buf_addstr(&out, str_of(own ? c->postgres : c->name));
    }
    if (at)
        buf_addstr(&out, str_of(at + 1));
    char *copy = xmalloc(out.n + 1);
    memcpy(copy, out.p, out.n);
    copy[out.n] = '\0';
    buf_release(&out);
    return copy;
}

static void add(const struct sql_read *r)
{
    reads[r->verb] = r;
    for (size_t d = 0; d < SQL_DIALECTS; d++)
        for (size_t v = 0; v < SQL_VARIANTS_MAX; v++)
            if (r->texts[d][v])
                statements[d][r->verb * SQL_VARIANTS_MAX + v] =
                    sql_expand(r->texts[d][v], r->row, (enum sql_dialect)d);
}

static void add_list(const struct sql_read *list)
{
    for (; list->row; list++)
        add(list);
}

static void add_all(void)
{
    static const struct sql_read *const lists[] = {sql_session_reads, sql_registry_reads,
                                                   sql_tool_reads, sql_size_reads};
    size_t n;
    const struct store_family *const *families = store_families(&n);
    for (size_t i = 0; i < countof(lists); i++)
        add_list(lists[i]);
    for (size_t i = 0; i < n; i++)
        add_list(families[i]->reads);
}

void sql_texts_add(const struct sql_text *list, enum sql_dialect dialect, unsigned first)
{
    for (; list->text; list++) {
        unsigned at = list->statement - first;
        assert(at >= SQL_FAMILY && at < SQL_STATEMENTS && !statements[dialect][at]);
        statements[dialect][at] = sql_expand(list->text, NULL, dialect);
    }
}

const struct sql_read *sql_read_of(unsigned verb)
{
    pthread_once(&once, add_all);
    assert(reads[verb]);
    return reads[verb];
}

size_t sql_statement_of(const struct sql_read *r, const struct store_call *c)
{
    return r->verb * SQL_VARIANTS_MAX + (r->variant ? r->variant(c) : 0);
}

const char *sql_statement_text(size_t statement, enum sql_dialect dialect)
{
    pthread_once(&once, add_all);
    return statements[dialect][statement];
}

const void *sql_arg_value(const struct sql_arg *a, const struct store_call *c)
{
    return (const char *)(a->in_filter ? c->filter : c) + a->at;
}

bool sql_enum_parse(enum column_kind kind, struct str name, void *member, struct error *err)
{
    bool known = kind == COLUMN_STATUS   ? session_status_parse(name, member)
                 : kind == COLUMN_ORIGIN ? session_origin_parse(name, member)
                                         : role_parse(name, member);
    if (!known && kind == COLUMN_ROLE)
        return error_set(err, ERR_INTERNAL, "A row has an unknown role; report it.");
    return known || error_set(err, ERR_INTERNAL,
                              "A session row has an unknown status or origin; report it.");
}

struct str sql_enum_name(enum column_kind kind, const void *member)
{
    return str_of(kind == COLUMN_STATUS ? session_status_name(*(const enum session_status *)member)
                  : kind == COLUMN_ORIGIN
                      ? session_origin_name(*(const enum session_origin *)member)
                      : role_name(*(const enum role *)member));
}
