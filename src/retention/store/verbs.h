/* SPDX-License-Identifier: Apache-2.0 */
/* The read verbs of retention: a list beside STORE_VERBS (store/verbs.h). */
#ifndef HOLDFAST_RETENTION_STORE_VERBS_H
#define HOLDFAST_RETENTION_STORE_VERBS_H

#include "retention/store/rows.h"
#include "store/sizes.h"
#include "store/store.h"

#define RETENTION_VERBS(X)                                                                         \
    X(RETENTION_STATE, retention_state, ROW)                                                       \
    X(SEGMENTS, segments, PAGE)                                                                    \
    X(REMOVED, removed, ROWS)                                                                      \
    X(TALLIES, tallies, ROWS)                                                                      \
    X(FOLDED, folded, ROWS)                                                                        \
    X(FILE_SPACE, file_space, OTHER)                                                               \
    X(FILE_SHRINK, file_shrink, OTHER)                                                             \
    X(SIZES_BY_DAY, sizes_by_day, ROWS)

enum retention_verb {
    RETENTION_VERBS_BEFORE = VERB_FAMILY + 24 - 1,
    RETENTION_VERBS(VERB_ENUM) RETENTION_VERBS_END,
};
_Static_assert(RETENTION_VERBS_END <= VERB_FAMILY + 32, "these numbers are taken");

must_check bool store_retention_state(struct store *s, struct arena *mem,
                                      struct retention_state **ret, struct error *err);

struct segment_page {
    int64_t from, upto; /* ids of first events */
    bool with_bodies;   /* else `bodies` is absent */
    bool only_bodies;   /* only segments that have bodies */
    size_t events;      /* the page ends with the segment that reaches so many; 0: no limit */
};
/* Segments in order of their ids, at most `limit`; fewer when they are large, but at least one.  An
 * unreadable segment has n = 0. */
must_check bool store_segments(struct store *s, const struct segment_page *page, unsigned limit,
                               struct arena *mem, struct segment_row **ret_rows, size_t *ret_n,
                               struct error *err);
/* Checkpoints of one writer, or of all (0), by writer, tenant and first_seq. */
must_check bool store_removed(struct store *s, int64_t writer, struct arena *mem,
                              struct removed_row **ret_rows, size_t *ret_n, struct error *err);
/* The sums of one kind, by tenant and `at`. */
must_check bool store_tallies(struct store *s, enum tally_kind kind, struct arena *mem,
                              struct tally_row **ret_rows, size_t *ret_n, struct error *err);
/* What is stored of each tenant by day, by tenant and day (store/sizes.h). */
must_check bool store_sizes_by_day(struct store *s, struct arena *mem, struct size_row **ret_rows,
                                   size_t *ret_n, struct error *err);
/* By writer.  A writer without folded events may be absent. */
must_check bool store_folded(struct store *s, struct arena *mem, struct folded_row **ret_rows,
                             size_t *ret_n, struct error *err);

/* Where the database is one file of its own; else all is 0. */
struct file_space {
    int64_t bytes; /* of the file */
    int64_t free;  /* of these, bytes of unused pages */
    bool shrinks;  /* store_file_shrink() can give them back */
};
must_check bool store_file_space(struct store *s, struct file_space *ret, struct error *err);
/* Gives at most so many bytes of unused pages back to the file system.  Write lane. */
must_check bool store_file_shrink(struct store *s, int64_t bytes, struct error *err);

#endif
