/* SPDX-License-Identifier: Apache-2.0 */
/* What every request of a command over the control socket is made of: an answer being gathered, the
 * memory it needs, and a client that may go away meanwhile.  A handler's own struct begins with it.
 */
#ifndef HOLDFAST_API_CONTROL_JOB_H
#define HOLDFAST_API_CONTROL_JOB_H

#include "api/plain.h"

struct control_job {
    struct services *sv;
    struct http_request *http;
    struct arena *mem;
    struct buf out; /* the answer, JSON */
    bool aborted;
};

/* A struct of `size` bytes that begins with a control_job, zeroed; it may take `max_bytes` of
 * memory, and its answer as many. */
void *control_job_new(size_t size, size_t max_bytes, struct services *sv,
                      struct http_request *r) must_check;
/* Answers with what is in out, or with the error, and frees it. */
void control_job_end(struct control_job *j, const struct error *err);
/* The lane would not take it: says so, and frees it. */
void control_job_busy(struct control_job *j);
/* A query parameter that stands there once, decoded; else absent. */
struct str control_query(const struct http_request *r, struct str name, struct arena *mem);

#endif
