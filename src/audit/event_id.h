/* SPDX-License-Identifier: Apache-2.0 */
/* Event ids as people read them: "3.1234" is the 1234th event of writer 3. */
#ifndef HOLDFAST_AUDIT_EVENT_ID_H
#define HOLDFAST_AUDIT_EVENT_ID_H

#include "store/rows.h"

#define EVENT_ID_TEXT 32

static inline int64_t event_id_make(int64_t writer, int64_t count)
{
    return writer << EVENT_WRITER_SHIFT | count;
}
static inline int64_t event_id_writer(int64_t id)
{
    return id >> EVENT_WRITER_SHIFT;
}
static inline int64_t event_id_count(int64_t id)
{
    return id & EVENT_COUNT_MASK;
}
/* Returns ret_text. */
const char *event_id_format(int64_t id, char ret_text[EVENT_ID_TEXT]);
/* Accepts "3.1234", and the id as a plain number. */
must_check bool event_id_parse(struct str text, int64_t *ret_id);

#endif
