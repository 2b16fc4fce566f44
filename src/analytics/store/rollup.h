/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the calls of a slice of the fold to the rollups.  Every backend uses this one function; it only
 * loads and saves rows. */
#ifndef HOLDFAST_ANALYTICS_STORE_ROLLUP_H
#define HOLDFAST_ANALYTICS_STORE_ROLLUP_H

#include "analytics/store/cells.h"
#include "analytics/store/rows.h"
#include "base/error.h"

struct rollup {
    const struct counted_labels *labels;
    int64_t label; /* identifies the labels, with their tenant */
    enum rollup_step step;
    int64_t span;
    struct str cells; /* as stored; absent: there is no row yet */
    /* For rollup_fold() alone. */
    struct cells delta;
    struct rollup *instead; /* of a day whose tenant has too many labels */
};

struct rollup_io {
    void *arg;
    /* Sets `cells` of those that are stored. */
    bool (*load)(void *arg, struct rollup **rows, size_t n, struct arena *mem, struct error *err);
    /* The number of rollups of this tenant on this day. */
    bool (*count)(void *arg, struct str tenant, int64_t span, int64_t *ret, struct error *err);
    /* Replaces or makes the rows.  The labels of a day may be new: they are saved too, if they are not
     * there yet. */
    bool (*save)(void *arg, struct rollup **rows, size_t n, struct arena *mem, struct error *err);
};

must_check bool rollup_fold(const struct rollup_io *io, const struct counted_call *calls, size_t n,
                            struct error *err);

#endif
