/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of limits: "600/m", "50MiB/h burst 200MiB", 8, "none".  The configuration, the
 * stored scopes of a key and the command line use the same form. */
#ifndef HOLDFAST_CONFIG_LIMITS_H
#define HOLDFAST_CONFIG_LIMITS_H

#include "base/limits.h"
#include "config/config.h"
#include "json/bind.h"
#include "json/write.h"

#define LIMIT_COUNT_MAX 1000000

const char *limit_name(enum limit_kind kind); /* "requests" … */
must_check bool limit_kind_parse(struct str name, enum limit_kind *ret);
/* ERR_BAD_INPUT explains the expected form. */
must_check bool limit_parse(enum limit_kind kind, struct str text, struct limit *ret,
                            struct error *err);
/* Fields of the four limits, for struct limits. */
extern const struct js_field limits_fields[];
/* Writes the limits that are set, in the form of limits_fields.  The caller has begun the
 * object. */
void limits_write(struct js_writer *w, const struct limits *l);
bool limits_are_unset(const struct limits *l);

/* A text for people: "600 requests a minute", "8 calls at a time". */
void limit_describe(enum limit_kind kind, const struct limit *l, struct buf *out);

/* The limits of a tenant, and of a key of that tenant.  The limits in `own` take precedence. */
struct limits config_limits(const struct config *c, struct str tenant);
struct limits config_key_limits(const struct config *c, struct str tenant,
                                const struct limits *own);

#endif
