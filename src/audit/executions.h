/* SPDX-License-Identifier: Apache-2.0 */
/* Executions as people ask for them: an intent joined with its outcome, or a note by itself. */
#ifndef HOLDFAST_AUDIT_EXECUTIONS_H
#define HOLDFAST_AUDIT_EXECUTIONS_H

#include "audit/source.h"
#include "json/write.h"

struct execution {
    struct event_row event; /* the intent or note */
    int64_t outcome_id;     /* 0 while open; the note itself for a note */
    struct str outcome;     /* "open" while there is none */
    struct str error;
    int64_t duration_us; /* -1 while open */
};

#define EXECUTIONS_FLUSH 500
struct execution_filter {
    struct event_filter events; /* server, tool, session_id, since_ms; order and kind are ours */
    struct str session;         /* beginning of a session id; absent: any */
    struct str outcome;         /* one of event_row.outcome's words or "open"; absent: any */
    unsigned limit;
    /* NULL: all rows are returned.  Else they are handed out in pieces of up to EXECUTIONS_FLUSH,
     * valid until it returns, and only counted; false ends the walk. */
    bool (*flush)(void *arg, const struct execution *rows, size_t n);
    void *arg;
};

/* The newest executions that match, newest first, in `mem`.  Reads no further back than it has to.
 */
must_check bool executions_newest(struct event_source *source,
                                  const struct execution_filter *filter, struct arena *mem,
                                  struct execution **ret_rows, size_t *ret_n, struct error *err);
/* The execution that event `id` (intent, outcome or note) belongs to, with its events and their
 * bodies; ERR_NOT_FOUND when there is none. */
must_check bool execution_get(struct event_source *source, int64_t id, struct arena *mem,
                              struct execution *ret, struct event_row **ret_events, size_t *ret_n,
                              struct error *err);
void execution_to_json(const struct execution *x, struct js_writer *w);

#endif
