/* SPDX-License-Identifier: Apache-2.0 */
/* The verb of feeds, for both SQL backends.  In PostgreSQL the last id of each writer is one probe of
 * the primary key, because a row of events has its number of events. */
#include "feeds/store/impl.h"

#include "store/postgres_impl.h"
#include "store/sqlite_impl.h"

#define AT(member) offsetof(struct event_writer, member)
static const struct row_column columns[] = {
    {COLUMN_INT, AT(number), "w.number"},
    {COLUMN_INT, AT(last_id), "-1",
     "coalesce((SELECT e.id + e.n - 1 FROM mcp.events e WHERE e.id >= w.number << 40 "
     "AND e.id < (w.number + 1) << 40 ORDER BY e.id DESC LIMIT 1), 0)"},
    {COLUMN_INSTANT, AT(started_ms), "w.started_at"},
    {COLUMN_INSTANT, AT(lease_until_ms), "w.lease_until_ms", "w.lease_until"},
    {COLUMN_TIME, AT(ended_ms), "w.ended_at"},
};
#undef AT
_Static_assert(EVENT_WRITER_SHIFT == 40, "the statement below shifts by 40");
static const struct row_type event_writer = {sizeof(struct event_writer), columns, countof(columns),
                                             NULL};

static const struct sql_text no_texts[] = {{0}};
static const struct verb_handler no_verbs[] = {{0}};
static const struct sq_op no_sqlite_ops[] = {{0}};
static const struct pg_verb no_postgres_ops[] = {{0}};
const struct sqlite_family feeds_sqlite = {
    .texts = no_texts, .ops = no_sqlite_ops, .verbs = no_verbs};
const struct postgres_family feeds_postgres = {
    .texts = no_texts, .ops = no_postgres_ops, .verbs = no_verbs};

const struct sql_read sql_feed_reads[] = {
    {VERB_EVENT_WRITERS,
     &event_writer,
     {CALL_ARG(ARG_INT, after_id), CALL_ARG(ARG_INSTANT, since_ms), {ARG_LIMIT}},
     NULL,
     {{"SELECT @ FROM writers w WHERE w.number > ?1 AND coalesce(w.ended_at, w.lease_until_ms) "
       ">= ?2 ORDER BY w.number LIMIT ?3"},
      {"SELECT @ FROM mcp.writers w WHERE w.number > $1::bigint AND coalesce(w.ended_at, "
       "w.lease_until) >= $2::timestamptz ORDER BY w.number LIMIT $3::bigint"}}},
    {0},
};
