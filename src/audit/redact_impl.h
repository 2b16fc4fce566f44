/* SPDX-License-Identifier: Apache-2.0 */
/* Between the parts of redaction: redact.c walks a body, redact_key.c judges names, redact_shape.c
 * knows what tokens look like. */
#ifndef HOLDFAST_AUDIT_REDACT_IMPL_H
#define HOLDFAST_AUDIT_REDACT_IMPL_H

#include "base/str.h"

enum key_class {
    KEY_PLAIN,
    KEY_SECRET,
    KEY_COUNT, /* "max_tokens": a number is kept, an object is looked into, anything else is secret
                */
};
/* `key` is a string's inside, escapes and all. */
enum key_class redact_key_class(struct str key);

/* Does a token begin at text[at], text[at - 1] being no letter or digit?  Then [*ret_from, *ret_to)
 * is the secret part of it.  *no_jwt_before spares a second look at a run that is known to be no
 * JWT, so that a body of nothing but beginnings stays linear; start it at 0. */
bool redact_shape_at(struct str text, size_t at, size_t *no_jwt_before, size_t *ret_from,
                     size_t *ret_to);
/* May a token begin with this byte?  Cheap, asked of every byte. */
bool redact_shape_may_begin(char c);

/* Nothing in these bytes could be touched by any rule; false only means that it has to be looked
 * at. */
bool redact_is_plain(struct str body);
/* May the name or the shape of a secret begin at this byte? */
bool redact_may_begin(struct str body, size_t at);
/* Is there any such place?  `blocks` false: without the help of wide registers, for tests. */
bool redact_scan(struct str body);
bool redact_scan_with(struct str body, bool blocks);

#endif
