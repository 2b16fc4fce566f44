/* SPDX-License-Identifier: Apache-2.0 */
/* A report of analytics: the calls of a time, grouped by one of their labels and by buckets of time.
 *
 *     report_init → report_begin for each tenant, [ report_filter → rows → report_add ]… → report_write
 */
#ifndef HOLDFAST_ANALYTICS_REPORT_H
#define HOLDFAST_ANALYTICS_REPORT_H

#include "analytics/store/cells.h"
#include "analytics/store/rows.h"
#include "base/error.h"
#include "json/write.h"

enum report_by {
    REPORT_SERVER,
    REPORT_TOOL,
    REPORT_CLIENT,
    REPORT_USER,
    REPORT_TENANT,
    REPORT_ERA,
    REPORT_CARRIER,
    REPORT_OUTCOME,
};
extern const char *const report_by_names[];   /* of enum report_by; NULL ends the list */
extern const char *const report_step_names[]; /* of enum rollup_step: 5m, 1h, 1d; likewise */

#define REPORT_BUCKETS_MAX 1000
#define REPORT_GROUPS 50 /* in an answer, unless the caller asks for another number */
#define REPORT_GROUPS_MAX 200
/* Groups that are counted; the calls of further ones are in the group ROLLUP_OTHER. */
#define REPORT_GROUPS_COUNTED 5000
/* What the buckets of one report may take on the heap. */
#define REPORT_BYTES_MAX ((size_t)128 << 20)

struct report {
    enum report_by by;
    enum rollup_step step;
    int64_t since, until;    /* spans, at the borders of buckets */
    struct str owner;        /* only calls of this owner; absent: of every one */
    size_t limit;            /* groups to write, those with the most calls */
    size_t bytes, max_bytes; /* that the buckets take, and may take */
    /* False: the calls of this row are not for the reader.  NULL: all are. */
    bool (*shows)(void *arg, struct str tenant, const struct rollup_row *row);
    void *arg;
    struct arena *mem;
    struct report_group *groups;
    size_t n, cap;
    struct map by_key;
    struct report_tally *total;
    struct rollup_filter next; /* of the page to read */
};

/* Checks the time: since_ms to until_ms are moved outwards to the borders of buckets.  ERR_BAD_INPUT:
 * there are too many buckets, or buckets of this length are not kept for so long. */
must_check bool report_init(struct report *r, enum report_by by, enum rollup_step step,
                            int64_t since_ms, int64_t until_ms, int64_t now_ms, struct arena *mem,
                            struct error *err);
void report_release(struct report *r);
/* The next rows are of this tenant, from the beginning. */
void report_begin(struct report *r, struct str tenant);
/* Adds a page that was read with r->next, and moves r->next behind it.  ERR_BAD_INPUT: the report takes
 * more than max_bytes. */
must_check bool report_add(struct report *r, const struct rollup_row *rows, size_t n,
                           struct error *err);
/* Writes an object.  `name_of` (may be NULL) returns the name of an owner, for people. */
void report_write(struct report *r, struct js_writer *w,
                  struct str (*name_of)(void *arg, struct str owner), void *arg);

#endif
