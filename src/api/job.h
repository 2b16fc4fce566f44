/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the operations for administrators: the call, the answer that is being written,
 * and memory that may be larger than a request's.  It is the first member of each operation's own
 * struct.  The functions that answer free the job. */
#ifndef HOLDFAST_API_JOB_H
#define HOLDFAST_API_JOB_H

#include "api/api.h"
#include "base/buf.h"

struct api_job {
    struct api_call *call;
    struct arena *mem;
    struct buf out; /* the answer, JSON */
};

/* Allocates a zeroed struct of `size` bytes that begins with an api_job.  `max_bytes` limits its
 * arena, and also its answer. */
void *api_job_new(size_t size, size_t max_bytes, struct api_call *c) must_check;
/* Answers with `out` and these header lines. */
void api_job_end(struct api_job *j, int status, struct str headers);
void api_job_refuse(struct api_job *j, const struct error *err);
void api_job_busy(struct api_job *j); /* the queue of the lane is full */
/* After api_query() or another reader has sent its refusal. */
void api_job_drop(struct api_job *j);

/* Whether the caller is the local admin: on the unix socket, without a credential.  Only the local
 * admin reaches every tenant. */
bool api_is_local(const struct api_call *c);
/* The tenant that the caller names in `asked`, or may reach without a name; absent: every tenant,
 * for the local admin alone.  false: it is not the caller's; the refusal was sent. */
must_check bool api_tenant(struct api_call *c, struct str asked, struct str *ret);
/* For an operation on one tenant: reads ?tenant=.  The local admin then acts in that tenant, and
 * others may name only their own.  false: the refusal was sent. */
must_check bool api_own_tenant(struct api_call *c);
/* Reads ?limit= and ?cursor= of a list.  *ret_after is the row that the page before ended with;
 * absent: the first page.  false: the refusal was sent. */
must_check bool api_page(struct api_call *c, struct str about, int64_t *ret_limit,
                         struct str *ret_after);
/* "by key:…" in mem, for events that another caller than the local admin causes; else absent. */
struct str api_by(const struct api_call *c, struct arena *mem);

#endif
