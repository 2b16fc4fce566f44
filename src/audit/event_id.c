/* SPDX-License-Identifier: Apache-2.0 */
/* Event ids to text and back; exact for every non-negative id. */
#include "audit/event_id.h"

const char *event_id_format(int64_t id, char ret_text[EVENT_ID_TEXT])
{
    char *at = ret_text;

    if (id < 0) {
        *at++ = '-';
        at = str_put_u64(at, 0 - (uint64_t)id);
    } else {
        at = str_put_u64(at, (uint64_t)event_id_writer(id));
        *at++ = '.';
        at = str_put_u64(at, (uint64_t)event_id_count(id));
    }
    *at = '\0';
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
