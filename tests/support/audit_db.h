/* SPDX-License-Identifier: Apache-2.0 */
/* A directory with a database, an audit key and chained events, for tests of the audit. */
#ifndef HOLDFAST_TESTS_AUDIT_DB_H
#define HOLDFAST_TESTS_AUDIT_DB_H

#include "test.h"

#include "audit/chain.h"
#include "base/clock.h"
#include "crypto/hash.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct audit_db {
    char dir[64];
    struct store *store;
    struct chain *chain;
    int64_t writer;
    struct buf anchor_lines;
    int64_t last_ms; /* the latest event written; anchors have its time */
};

#define must(expression)                                                                           \
    do {                                                                                           \
        if (!(expression))                                                                         \
            fail_msg("%s: %s", #expression, must_err.text);                                        \
    } while (0)
static struct error must_err;

static inline struct str audit_db_path(const struct audit_db *db, const char *name, char ret[128])
{
    snprintf(ret, 128, "%s/%s", db->dir, name);
    return str_of(ret);
}

/* A start: a new writer with its own chain. */
static inline void audit_db_start(struct audit_db *db)
{
    char path[128];
    struct writer_row row = {.uuid = STR("00000000-0000-7000-8000-000000000000"),
                             .node = STR("test"),
                             .started_ms = clock_life_ms(),
                             .lease_until_ms = clock_life_ms() + 15000};
    char uuid[37];
    static int starts;
    snprintf(uuid, sizeof(uuid), "00000000-0000-7000-8000-%012d", ++starts);
    row.uuid = str_of(uuid);
    chain_free(db->chain);
    must(store_writer_start(db->store, &row, true, &must_err));
    db->writer = row.number;
    must(chain_open(audit_db_path(db, "audit.key", path), true, db->writer, &db->chain, &must_err));
    must(chain_load(db->chain, db->store, &must_err));
}

static inline void audit_db_open(struct audit_db *db, bool memory)
{
    char path[128];
    *db = (struct audit_db){.dir = "/tmp/holdfast-audit-XXXXXX", .last_ms = 1700000001000};
    assert_non_null(mkdtemp(db->dir));
    buf_init(&db->anchor_lines, 1 << 20);
    struct store_config config = {.path = audit_db_path(db, "holdfast.db", path)};
    if (memory)
        must(store_open_memory(&db->store, &must_err));
    else
        must(store_open_sqlite(&config, &db->store, &must_err));
    audit_db_start(db);
}

static inline void audit_db_close(struct audit_db *db)
{
    char command[128];
    chain_free(db->chain);
    if (db->store)
        store_close(db->store);
    buf_release(&db->anchor_lines);
    snprintf(command, sizeof(command), "rm -r %s", db->dir);
    assert_int_equal(system(command), 0);
}

static inline void audit_db_body(struct event_row *e, struct str body)
{
    e->body = body;
    e->body_len = (int64_t)body.n;
    sha256(body, e->body_sha);
    sha256(body, e->stored_sha);
}

/* Numbers, seals and writes the events as the write lane would. */
static inline bool audit_db_try_write(struct audit_db *db, struct event_row **events, size_t n,
                                      struct error *err)
{
    struct store_op ops[64] = {{0}};
    struct write_hook hook = chain_hook(db->chain);
    assert_true(n <= countof(ops));
    for (size_t i = 0; i < n; i++)
        ops[i] = (struct store_op){.kind = OP_EVENT_APPEND, .event = events[i]};
    if (!hook.assign(hook.arg, db->store, ops, n, err))
        return false;
    if (!store_write(db->store, ops, n, err)) {
        hook.rollback(hook.arg);
        return false;
    }
    hook.commit(hook.arg);
    for (size_t i = 0; i < n; i++)
        if (events[i]->at_ms > db->last_ms)
            db->last_ms = events[i]->at_ms;
    return true;
}

static inline void audit_db_write(struct audit_db *db, struct event_row **events, size_t n)
{
    must(audit_db_try_write(db, events, n, &must_err));
}

static inline struct event_row audit_db_event(enum event_kind kind, struct str tenant)
{
    return (struct event_row){.tenant = tenant,
                              .at_ms = 1700000000000,
                              .kind = kind,
                              .owner = STR("local"),
                              .server = STR("files"),
                              .method = STR("tools/call"),
                              .tool = STR("echo"),
                              .body_len = -1};
}

static inline void audit_db_anchor(struct audit_db *db)
{
    struct buf body;
    bool left;
    buf_init(&body, 1 << 20);
    struct event_row e = {
        .tenant = STR(CHAIN_SYSTEM_TENANT), .at_ms = db->last_ms, .kind = EVENT_ANCHOR};
    chain_anchor_body(db->chain, &body, &left);
    audit_db_body(&e, buf_str(&body));
    audit_db_write(db, (struct event_row *[]){&e}, 1);
    chain_anchor_line(&e, &db->anchor_lines);
    buf_release(&body);
}

#endif
