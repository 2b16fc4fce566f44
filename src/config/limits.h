/* SPDX-License-Identifier: Apache-2.0 */
/* Limits as they are written: "600/m", "50MiB/h burst 200MiB", 8, "none".  The same texts stand in
 * the configuration, in the stored scopes of a key and on the command line. */
#ifndef HOLDFAST_CONFIG_LIMITS_H
#define HOLDFAST_CONFIG_LIMITS_H

#include "base/limits.h"
#include "config/config.h"
#include "json/bind.h"
#include "json/write.h"

#define LIMIT_COUNT_MAX 1000000

const char *limit_name(enum limit_kind kind); /* "requests" … */
must_check bool limit_kind_parse(struct str name, enum limit_kind *ret);
/* ERR_BAD_INPUT says how it is written. */
must_check bool limit_parse(enum limit_kind kind, struct str text, struct limit *ret,
                            struct error *err);
/* Rows of the four, into a struct limits. */
extern const struct js_field limits_fields[];
/* The members that are said, as limits_fields reads them; the caller has begun the object. */
void limits_write(struct js_writer *w, const struct limits *l);
bool limits_are_unsaid(const struct limits *l);

/* For people: "600 requests a minute", "8 calls at a time". */
void limit_describe(enum limit_kind kind, const struct limit *l, struct buf *out);

/* What holds for a tenant, and for each of its keys that says nothing itself. */
struct limits config_limits(const struct config *c, struct str tenant);
struct limits config_key_limits(const struct config *c, struct str tenant,
                                const struct limits *own);

#endif
