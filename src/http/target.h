/* SPDX-License-Identifier: Apache-2.0 */
/* An address outside that Holdfast itself sends to: a collector of traces, a webhook.  One request at
 * a time, on one connection; redirects are never followed.  An answer says whether the request was
 * taken, whether another try makes sense, and when.  The answer's body is bounded; a body that is
 * too large or malformed does not change what the status said. */
#ifndef HOLDFAST_HTTP_TARGET_H
#define HOLDFAST_HTTP_TARGET_H

#include "http/client.h"

#define TARGET_TIMEOUT_MS 10000
#define TARGET_ANSWER_MAX (64u * 1024)
#define TARGET_RETRY_FIRST_MS 1000
#define TARGET_RETRY_LAST_MS 60000
#define TARGET_RETRY_AFTER_MAX_MS 300000 /* a longer Retry-After is cut to this */

struct http_target;
struct http_target_config {
    struct str url;
    struct str lines; /* header lines, "Name: value\r\n…"; copied into memory for secrets */
    struct str ca;    /* file of authorities; absent: those of the system */
};
must_check bool http_target_new(struct loop *loop, const struct http_target_config *config,
                                struct http_target **ret, struct error *err);
void http_target_free(struct http_target *t); /* no answer comes afterwards; NULL is fine */

enum target_result {
    TARGET_TAKEN,   /* 2xx */
    TARGET_LATER,   /* not reachable, timed out, 408, 429 or 5xx: try again after `wait_ms` */
    TARGET_REFUSED, /* any other status: another try would get the same answer */
};
struct target_answer {
    enum target_result result;
    int status; /* 0: there was no answer */
    /* Of Retry-After; 0: the answer has none. */
    int64_t retry_after_ms;
    struct str body; /* of a complete answer; else absent.  Valid during the call */
    const char *why; /* a sentence without bytes of the peer; NULL when taken */
};
/* Sends a POST.  `path` (or absent) replaces the target of the URL; `lines` are further header
 * lines.  `parts` are copied as far as they cannot be sent at once.  One request at a time. */
void http_target_post(struct http_target *t, struct str path, struct str lines,
                      const struct iovec *parts, int n,
                      void (*done)(void *arg, const struct target_answer *a), void *arg);
bool http_target_is_busy(const struct http_target *t);
struct str http_target_path(const struct http_target *t); /* of the URL, with its query */

/* The wait before try `tries` + 1: doubles from a second to a minute, with jitter.  A Retry-After
 * (0: none) is a lower bound. */
int64_t http_target_wait_ms(unsigned tries, int64_t retry_after_ms);

#endif
