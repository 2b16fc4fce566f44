/* SPDX-License-Identifier: Apache-2.0 */
/* Merges a change into a document: RFC 7396 merge patch, or a join that loses nothing. */
#ifndef HOLDFAST_JSON_MERGE_H
#define HOLDFAST_JSON_MERGE_H

#include "base/buf.h"
#include "json/read.h"

enum merge_how {
    MERGE_PATCH,  /* null removes a member, objects are merged, other values replace */
    MERGE_APPEND, /* arrays are appended to, objects are merged, other values replace */
};
/* Both must be valid JSON within js_limits_request, as accepted before.  Unchanged parts keep their
 * bytes and their position; new members come last.  Returns false beyond the limit of `out`. */
must_check bool json_merge(struct str document, struct str change, enum merge_how how,
                           struct arena *mem, struct buf *out);

#endif
