/* SPDX-License-Identifier: Apache-2.0 */
/* If-Match and If-None-Match (RFC 9110 §13.1). */
#ifndef HOLDFAST_API_TAGS_H
#define HOLDFAST_API_TAGS_H

#include "base/str.h"

/* If-None-Match: whether the tag, or "*", is in the list.  Weak comparison. */
bool tags_have(struct str header, struct str tag);
/* If-Match: whether a tag with this version, or "*", is in the list; weak tags never match.  The
 * digest in a tag is not compared: counters and the clock change it, and a write overwrites
 * neither. */
must_check bool tags_match(struct str header, int64_t version, int64_t *ret_version);

#endif
