/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of templates.  Each function below makes one op for store_write(). */
#ifndef HOLDFAST_TEMPLATES_STORE_OPS_H
#define HOLDFAST_TEMPLATES_STORE_OPS_H

#include "store/store.h"
#include "templates/store/rows.h"

enum template_op {
    OP_TEMPLATE_PUT = OP_FAMILY + 12,
    OP_TEMPLATE_REMOVE,
    TEMPLATE_OPS_END,
};
_Static_assert(TEMPLATE_OPS_END <= OP_COUNT, "raise OP_COUNT");

/* All columns but the version: adds a version.  The same spec as that of the newest version adds
 * nothing.  OK sets row.version, to that of the added or the equal version.  STALE when `expected`
 * is not met.  LIMIT when the tenant has TEMPLATES_MAX templates, or this one has
 * TEMPLATE_VERSIONS_MAX versions. */
static inline struct store_op op_template_put(struct template_change *change)
{
    return (struct store_op){.kind = OP_TEMPLATE_PUT, .row = change};
}
/* tenant, name: removes every version.  MISSING when there is none; STALE as above. */
static inline struct store_op op_template_remove(struct template_change *change)
{
    return (struct store_op){.kind = OP_TEMPLATE_REMOVE, .row = change};
}

#endif
