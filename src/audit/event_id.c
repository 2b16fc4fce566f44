/* SPDX-License-Identifier: Apache-2.0 */
/* Event ids to text and back; exact for every non-negative id. */
#include "audit/event_id.h"

#include <inttypes.h>
#include <stdio.h>

const char *event_id_format(int64_t id, char ret_text[EVENT_ID_TEXT])
{
    if (id < 0)
        snprintf(ret_text, EVENT_ID_TEXT, "%" PRId64, id);
    else
        snprintf(ret_text, EVENT_ID_TEXT, "%" PRId64 ".%" PRId64, event_id_writer(id),
                 event_id_count(id));
    return ret_text;
}

bool event_id_parse(struct str text, int64_t *ret_id)
{
    uint64_t writer, count;
    size_t dot = str_find(text, '.');
    if (dot == text.n) {
        if (!str_to_u64(text, INT64_MAX, &count))
            return false;
        *ret_id = (int64_t)count;
        return true;
    }
    if (!str_to_u64(str_n(text.p, dot), INT64_MAX >> EVENT_WRITER_SHIFT, &writer) ||
        !str_to_u64(str_n(text.p + dot + 1, text.n - dot - 1), EVENT_COUNT_MASK, &count))
        return false;
    *ret_id = event_id_make((int64_t)writer, (int64_t)count);
    return true;
}
