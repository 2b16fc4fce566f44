/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that both SQL backends share: the columns of each row, and the read verbs whose answer is
 * the rows of one statement.  A backend builds the column list, binds the parameters and reads the
 * rows from these tables (sqlite_sql_read.c, postgres_sql_read.c).
 *
 * The files sql_*.c hold the tables, with the statement of each verb in both dialects.  A verb that
 * needs more than one statement has a handler in each backend instead. */
#ifndef HOLDFAST_STORE_SQL_H
#define HOLDFAST_STORE_SQL_H

#include "store/store_impl.h"

enum sql_dialect { SQL_SQLITE, SQL_POSTGRES, SQL_DIALECTS };

/* The C type of a member, and its type in each database.  An absent text is NULL, and NULL is read
 * as absent, 0 or zero bytes. */
enum column_kind {
    COLUMN_TEXT,     /* struct str */
    COLUMN_BYTES,    /* struct str; BLOB, bytea */
    COLUMN_RAW_TEXT, /* struct str that need not be UTF-8; TEXT, bytea */
    COLUMN_UUID,     /* struct str; TEXT, uuid */
    COLUMN_TENANT,   /* text; written with the principal's tenant or owner, if there is one */
    COLUMN_OWNER,
    COLUMN_INT,     /* int64_t */
    COLUMN_INT32,   /* int, or an enum */
    COLUMN_BOOL,    /* INTEGER, boolean */
    COLUMN_INSTANT, /* int64_t of milliseconds; INTEGER, timestamptz */
    COLUMN_TIME,    /* likewise; 0 is NULL */
    COLUMN_LAST,    /* likewise; 0 is 0 in SQLite and NULL in PostgreSQL */
    COLUMN_SHA,     /* uint8_t[32] */
    COLUMN_STATUS,  /* enum session_status by its name; so are the next two */
    COLUMN_ORIGIN,
    COLUMN_ROLE,
};
struct row_column {
    enum column_kind kind;
    size_t at; /* offset of the member in the row */
    const char *name;
    const char *postgres; /* the expression in PostgreSQL; NULL: the name */
};
struct row_type {
    size_t size;
    const struct row_column *columns;
    size_t n;
    void (*finish)(void *row); /* called after all columns were read; may be NULL */
};
extern const struct row_type sql_session, sql_transport, sql_link, sql_undelivered,
    sql_undelivered_listed, sql_context, sql_idempotency, sql_key, sql_user, sql_login, sql_tenant,
    sql_tenant_key, sql_secret, sql_change, sql_tool, sql_server;

/* Parameters of a statement, in order. */
enum arg_kind {
    ARG_END,
    ARG_TEXT,
    ARG_NAME,       /* text to look up; one that PostgreSQL cannot store becomes "" */
    ARG_FROM,       /* text; absent is "" */
    ARG_RAW_TEXT,   /* as COLUMN_RAW_TEXT */
    ARG_RAW_FROM,   /* likewise; absent is "" */
    ARG_UUID,       /* text */
    ARG_UUID_AFTER, /* text; absent sorts before every id */
    ARG_UUID_BEFORE,
    ARG_HASH, /* const uint8_t * to 32 bytes */
    ARG_INT,
    ARG_INT_BEFORE, /* 0 is INT64_MAX */
    ARG_BITS,       /* unsigned */
    ARG_BOOL,
    ARG_INSTANT, /* milliseconds */
    ARG_NOW,
    ARG_LIMIT,
    ARG_TENANT, /* the principal's; so are the next two */
    ARG_OWNER,
    ARG_WIDE, /* tenant_wide */
};
struct sql_arg {
    enum arg_kind kind;
    bool in_filter; /* a member of the call's filter, not of the call */
    size_t at;
};
#define CALL_ARG(kind, member)                                                                     \
    {                                                                                              \
        kind, false, offsetof(struct store_call, member)                                           \
    }
#define FILTER_ARG(kind, filter, member)                                                           \
    {                                                                                              \
        kind, true, offsetof(struct filter, member)                                                \
    }
/* The value of an argument, as a pointer to its member. */
const void *sql_arg_value(const struct sql_arg *a, const struct store_call *c);

#define SQL_ARGS_MAX 10
#define SQL_VARIANTS_MAX 6
struct sql_read {
    unsigned verb;
    const struct row_type *row;
    struct sql_arg args[SQL_ARGS_MAX];
    /* Chooses among the texts; NULL: there is one. */
    unsigned (*variant)(const struct store_call *c);
    /* "@" stands for the columns of the row.  No text: the verb has a handler. */
    const char *texts[SQL_DIALECTS][SQL_VARIANTS_MAX];
    /* In PostgreSQL, a page without the time limit of pages. */
    bool no_page_limit;
};
/* Each file's list; the last row has no row type.  Families have lists of their own. */
extern const struct sql_read sql_session_reads[], sql_registry_reads[], sql_tool_reads[],
    sql_size_reads[];

/* The verb must be in a list. */
const struct sql_read *sql_read_of(unsigned verb);
/* Statements of reads are numbered after those of the backend; then come those that families have
 * besides their reads.  The n-th family numbers its own from SQL_FAMILY_AT(n) on; the knowledge base
 * is the first, with n = 0. */
#define SQL_FAMILY (VERB_COUNT * SQL_VARIANTS_MAX)
#define SQL_FAMILY_ROOM 32
#define SQL_FAMILY_AT(n) (SQL_FAMILY + SQL_FAMILY_ROOM * (n))
#define SQL_STATEMENTS SQL_FAMILY_AT(12)
size_t sql_statement_of(const struct sql_read *r, const struct store_call *c);
/* The text of such a statement, with its columns; NULL: the backend has no such statement. */
const char *sql_statement_text(size_t statement, enum sql_dialect dialect);
/* The statements of a family for one backend: `statement` as the backend counts it.  A row without a
 * text ends the list. */
struct sql_text {
    unsigned statement;
    const char *text;
};
/* `first`: the backend's own statements are numbered below it. */
void sql_texts_add(const struct sql_text *list, enum sql_dialect dialect, unsigned first);
/* Copies a text with "@" replaced by the columns of the row; the caller frees it. */
char *sql_expand(const char *text, const struct row_type *row, enum sql_dialect dialect) must_check;
/* Parses the name of a status, origin or role into the member. */
must_check bool sql_enum_parse(enum column_kind kind, struct str name, void *member,
                               struct error *err);
/* The name to write. */
struct str sql_enum_name(enum column_kind kind, const void *member);

#endif
