/* SPDX-License-Identifier: Apache-2.0 */
/* A document changed by another: RFC 7396 merge patch, or joined so that nothing is lost. */
#ifndef HOLDFAST_JSON_MERGE_H
#define HOLDFAST_JSON_MERGE_H

#include "base/buf.h"
#include "json/read.h"

enum merge_how {
    MERGE_PATCH,  /* null takes a member away, objects are merged, all else replaces */
    MERGE_APPEND, /* arrays grow at their end, objects are merged, all else replaces */
};
/* Both are valid JSON within js_limits_request, as they were accepted once.  What is not changed
 * keeps its bytes and its place; new members come last.  false: past the ceiling of `out`. */
must_check bool json_merge(struct str document, struct str change, enum merge_how how,
                           struct arena *mem, struct buf *out);

#endif
