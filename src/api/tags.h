/* SPDX-License-Identifier: Apache-2.0 */
/* If-Match and If-None-Match (RFC 9110 §13.1). */
#ifndef HOLDFAST_API_TAGS_H
#define HOLDFAST_API_TAGS_H

#include "base/str.h"

/* If-None-Match: is the tag, or "*", in the list?  Weak comparison. */
bool tags_have(struct str header, struct str tag);
/* If-Match: does a tag in the list, or "*", speak of this version?  Weak ones never do.  The digest
 * in a tag does not matter: counters and the clock move it, and a change overwrites neither. */
must_check bool tags_match(struct str header, int64_t version, int64_t *ret_version);

#endif
