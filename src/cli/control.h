/* SPDX-License-Identifier: Apache-2.0 */
/* Commands ask a running Holdfast with blocking requests over DATA/holdfast.sock, or at a URL
 * (remote.h).  While none runs, they ask the operations inside this process
 * (gateway_local.h) in the same way. */
#ifndef HOLDFAST_CLI_CONTROL_H
#define HOLDFAST_CLI_CONTROL_H

#include "base/arena.h"
#include "base/error.h"

struct control;
must_check bool control_open_socket(struct str data_dir, struct control **ret, struct error *err);
/* `ca_file`: the authorities to trust instead of the system's; NULL: none. */
must_check bool control_open_url(struct str url, const char *ca_file, struct control **ret,
                                 struct error *err);
struct gateway_local;
/* `local` is borrowed.  Errors have the text of the operation alone. */
struct control *control_open_local(struct gateway_local *local) must_check;
void control_close(struct control *c);
void control_set_deadline(struct control *c, int64_t ms); /* default: 30 s */
/* A wait for an answer also ends when nobody reads stdout any more.  Not at a URL. */
void control_watch_output(struct control *c, bool watches);
/* Sends `key` (borrowed) as the bearer token of all later requests; NULL: none. */
void control_set_key(struct control *c, const char *key);
/* Whether the key can be read on the network that it crosses. */
bool control_is_clear(const struct control *c);
/* *ret_body is the body of a 2xx answer, in mem, at most 64 MiB.  Any other answer is an error with
 * the daemon's text.  The body of the request is JSON; absent: none. */
must_check bool control_ask(struct control *c, const char *method, struct str path, struct str body,
                            struct arena *mem, struct str *ret_body, struct error *err);
/* The same with additional header lines, each with its CRLF. */
struct control_request {
    const char *method;
    struct str path, headers, body; /* absent: none */
    const char *type;               /* of the body; NULL: JSON */
};
must_check bool control_send(struct control *c, const struct control_request *r, struct arena *mem,
                             struct str *ret_body, struct error *err);
/* GET, without a body; `c` is a struct control. */
must_check bool control_get(void *c, struct str path, struct arena *mem, struct str *ret_body,
                            struct error *err);

/* An answer of any size: hands the bytes of its body to `take` as they come, until it returns
 * false with *err set.  The deadline limits the wait for the next bytes.  True: the body was
 * complete. */
must_check bool control_receive(struct control *c, const struct control_request *r,
                                struct arena *mem,
                                bool (*take)(void *arg, struct str bytes, struct error *err),
                                void *arg, struct error *err);
/* The same for a GET. */
must_check bool control_download(struct control *c, struct str path, struct arena *mem,
                                 bool (*take)(void *arg, struct str bytes, struct error *err),
                                 void *arg, struct error *err);

/* Opens a line channel: POST `path`, answered 101.  *ret_fd is the connected, non-blocking socket,
 * owned by the caller; both sides send lines on it.  *ret_config, in mem, is the Holdfast-Config of
 * the answer: sample, edited or same. */
must_check bool control_lines(struct control *c, struct str path, struct arena *mem, int *ret_fd,
                              struct str *ret_config, struct error *err);

#endif
