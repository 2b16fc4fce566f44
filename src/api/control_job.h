/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of all requests that commands send over the control socket: the answer that is
 * being written, its memory, and whether the client has disconnected.  It is the first member of
 * each handler's own struct. */
#ifndef HOLDFAST_API_CONTROL_JOB_H
#define HOLDFAST_API_CONTROL_JOB_H

#include "api/plain.h"

struct control_job {
    struct api_services *sv;
    struct http_request *http;
    struct arena *mem;
    struct buf out; /* the answer, JSON */
    bool aborted;
};

/* Allocates a zeroed struct of `size` bytes that begins with a control_job.  `max_bytes` limits its
 * arena, and also its answer. */
void *control_job_new(size_t size, size_t max_bytes, struct api_services *sv,
                      struct http_request *r) must_check;
/* Answers with `out`, or with `err` unless it is NULL, and frees the job. */
void control_job_end(struct control_job *j, const struct error *err);
/* The queue of the lane is full: answers with an error and frees the job. */
void control_job_busy(struct control_job *j);
/* The decoded query parameter, in mem; absent when it is missing, empty, malformed or repeated. */
struct str control_query(const struct http_request *r, struct str name, struct arena *mem);

#endif
