/* SPDX-License-Identifier: Apache-2.0 */
/* What `holdfast up` shows to a person: the start in short, the servers as they come up, and one
 * line for each finished call.  Only with human log lines (gateway_options.is_shown). */
#ifndef HOLDFAST_GATEWAY_SHOW_H
#define HOLDFAST_GATEWAY_SHOW_H

#include "base/buf.h"
#include "base/str.h"
#include "store/rows.h"

struct gateway;
struct gateway_show;
/* Loop thread, after the listeners are open and before the loop runs. */
struct gateway_show *gateway_show_start(struct gateway *g) must_check;
void gateway_show_stop(struct gateway_show *s); /* before the audit ends; NULL is fine */

/* "14:03:10  claude-code     files.read_file                   ok            12 ms\n", at most 80
 * columns.  `client` is the name that the client gave itself; absent: the owner.  False: this event
 * is not the end of a call. */
must_check bool show_call(struct buf *out, const struct event_row *e, struct str client,
                          bool colour);
/* Appends text of a peer: escaped, cut to `columns` characters and, with `pad`, filled up to
 * them. */
void show_cut(struct buf *out, struct str text, size_t columns, bool pad);
/* The lines with which clients connect to `url` ("http://127.0.0.1:4653"), each after `indent`. */
void show_connect(struct buf *out, struct str url, bool auth_required, struct str data_dir,
                  const char *indent);

#endif
