/* SPDX-License-Identifier: Apache-2.0 */
/* The lineage of a session: the session that it was made from.  It is the JSON text of the column
 * `lineage`, written once, when the session is made:
 *
 *   {"kind":"fork","session":"0197…"}
 *   {"kind":"import","session":"0197…","key":"3b1f…", …}
 *
 * `session` is the row id of the origin, at the Holdfast where it lives.  A kind may have further
 * members, which its own folder writes and reads. */
#ifndef HOLDFAST_SESSION_LINEAGE_H
#define HOLDFAST_SESSION_LINEAGE_H

#include "base/arena.h"

#define LINEAGE_BYTES_MAX 4096

enum lineage_kind {
    LINEAGE_FORK, /* copied from a session of this Holdfast; only what is remembered, no history */
    LINEAGE_IMPORT, /* read from the file of another Holdfast, with its history */
    LINEAGE_REPLAY, /* its calls are those of another session, sent again */
};
extern const char *const lineage_kind_names[]; /* NULL-terminated, for JS_BIND_ENUM and schemas */

struct lineage {
    enum lineage_kind kind;
    struct str session; /* row id of the origin */
    struct str json;    /* the whole text */
};
/* The text in mem.  `more` is a JSON object with the further members of this kind, without `kind` and
 * `session`; absent: none.  Absent result: the text would be longer than LINEAGE_BYTES_MAX. */
struct str lineage_write(enum lineage_kind kind, struct str session, struct str more,
                         struct arena *mem);
/* Texts are in mem, or in `json`, which must live as long.  False: the text is not a lineage, or of a kind that this program does not
 * know. */
must_check bool lineage_read(struct str json, struct arena *mem, struct lineage *ret);
/* A further text member of a lineage that was read; absent when it has none of that name. */
struct str lineage_text(const struct lineage *l, struct str name, struct arena *mem);
/* A further number; `if_absent` when it has none of that name. */
int64_t lineage_number(const struct lineage *l, struct str name, int64_t if_absent);
/* Whether the session was made in this way; for rows whose lineage is not needed otherwise. */
bool lineage_is(struct str json, enum lineage_kind kind);

#endif
