/* SPDX-License-Identifier: Apache-2.0 */
/* Executions as queries return them: an intent joined with its outcome, or a note by itself. */
#ifndef HOLDFAST_AUDIT_EXECUTIONS_H
#define HOLDFAST_AUDIT_EXECUTIONS_H

#include "audit/source.h"
#include "json/read.h"
#include "json/write.h"

struct execution {
    struct event_row event; /* the intent or note */
    struct str outcome;     /* "open" while the execution has no outcome */
    struct str error;
    int64_t outcome_id;  /* the event with the outcome and its body; 0: none, or not known */
    int64_t duration_us; /* -1 while open */
    /* For people, where the reader has them: names of user, key and client, arguments in a line,
     * and what the server said to a call that failed. */
    struct str user, key, client, arguments, reply;
};

struct execution_filter {
    struct event_filter events; /* server, tool, session_id, since_ms; order and kind are ignored */
    struct str session;         /* beginning of a session id; absent: any */
    struct str outcome;         /* one of the words of event_row.outcome, or "open"; absent: any */
    bool errors;                /* only calls that failed, or whose outcome is not known */
    int64_t begun_before_ms;    /* 0: any */
    /* A further condition; NULL: none.  Called before the texts of `x` are copied. */
    bool (*fits)(void *arg, const struct execution *x);
    void *fits_arg;
    unsigned limit;
    /* For pages: the walk begins before `events.before`, so an intent may have its outcome in a page
     * that was read earlier; such an outcome is looked up.  The walk ends early at until_ms
     * (clock_mono_ms()).  *ret_end is the event to go on before; 0: the walk reached its end. */
    int64_t *ret_end; /* NULL: no pages */
    int64_t until_ms;
};

/* Imported calls are only among them if `session` is given; their time is that of their origin.
 * Returns the newest matching executions, newest first, in `mem`.  Reads no further back than
 * necessary. */
must_check bool executions_newest(struct event_source *source,
                                  const struct execution_filter *filter, struct arena *mem,
                                  struct execution **ret_rows, size_t *ret_n, struct error *err);
/* Returns the execution that event `id` (intent, outcome or note) belongs to, with its events and
 * their bodies; ERR_NOT_FOUND when no such event exists. */
must_check bool execution_get(struct event_source *source, int64_t id, struct arena *mem,
                              struct execution *ret, struct event_row **ret_events, size_t *ret_n,
                              struct error *err);
/* Whether an outcome is an error: neither ok, redelivered, cancelled nor open. */
bool execution_failed(struct str outcome);
/* The arguments in the body of an intent or a record, as stored, in one line of at most
 * EXECUTION_ARGUMENTS bytes: path="/notes", depth=2.  Absent: there are none. */
#define EXECUTION_ARGUMENTS 400
struct str execution_arguments(struct str body, struct arena *mem);
/* What the server said in the body of a failed outcome, as stored: the first text of the result, or
 * the message of the error; its first line, at most EXECUTION_ARGUMENTS bytes. */
struct str execution_reply_text(struct str body, struct arena *mem);
void execution_to_json(const struct execution *x, struct js_writer *w);
/* Reads what execution_to_json() writes; the other members of ret->event are zero.  Texts are views
 * into the document or copies in `mem`. */
must_check bool execution_from_json(const struct js_doc *doc, const struct js_node *v,
                                    struct arena *mem, struct execution *ret, struct error *err);

#endif
