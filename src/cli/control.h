/* SPDX-License-Identifier: Apache-2.0 */
/* How commands ask a running Holdfast: blocking requests over DATA/holdfast.sock, or over loopback
 * TCP.
 */
#ifndef HOLDFAST_CLI_CONTROL_H
#define HOLDFAST_CLI_CONTROL_H

#include "base/arena.h"
#include "base/error.h"

struct control;
must_check bool control_open_socket(struct str data_dir, struct control **ret, struct error *err);
must_check bool control_open_url(struct str url, struct control **ret, struct error *err);
void control_close(struct control *c);
void control_set_deadline(struct control *c, int64_t ms); /* 30 s unless told */
/* A key that goes along from now on, as the one who asks; NULL: none. */
void control_set_key(struct control *c, const char *key);
/* The body of a 200 answer, in mem; anything else is an error whose text is the daemon's own.
 * At most 64 MiB.  A request's body (absent: none) is JSON. */
must_check bool control_ask(struct control *c, const char *method, struct str path, struct str body,
                            struct arena *mem, struct str *ret_body, struct error *err);
/* The same with header lines of one's own, each with its CRLF. */
struct control_request {
    const char *method;
    struct str path, headers, body; /* absent: none */
};
must_check bool control_send(struct control *c, const struct control_request *r, struct arena *mem,
                             struct str *ret_body, struct error *err);
/* GET, without a body; `c` is a struct control. */
must_check bool control_get(void *c, struct str path, struct arena *mem, struct str *ret_body,
                            struct error *err);

/* Asks for a line channel: POST `path`, answered 101.  *ret_fd is the connected socket (the
 * caller's, non-blocking), on which both sides speak lines from now on; *ret_config, in mem, what
 * the answer's Holdfast-Config says of the configuration served there: sample, edited or same. */
must_check bool control_lines(struct control *c, struct str path, struct arena *mem, int *ret_fd,
                              struct str *ret_config, struct error *err);

#endif
