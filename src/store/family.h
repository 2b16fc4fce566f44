/* SPDX-License-Identifier: Apache-2.0 */
/* A family: the ops and verbs that another folder adds to the store.  Every backend answers them
 * through the same write() and call() as its own, so wrappers see them too.
 *
 * A family numbers its ops from OP_FAMILY on and its verbs from VERB_FAMILY on; no two families may
 * use the same number (OP_FAMILY + 0 to 7 and VERB_FAMILY + 0 to 15 are the knowledge base's).  Its
 * tables and their migrations are part of the one schema (sql/).  The memory store is for tests and
 * has a registration of its own (memory_impl.h). */
#ifndef HOLDFAST_STORE_FAMILY_H
#define HOLDFAST_STORE_FAMILY_H

#include "store/store_impl.h"

struct sql_read;
struct sqlite_family;
struct postgres_family;

struct family_verb {
    unsigned verb;
    struct verb_info info;
};
struct family_op {
    unsigned kind;
    struct op_info info;
};
struct store_family {
    const struct family_verb *verbs;        /* a row without a name ends the list */
    const struct family_op *ops;            /* likewise */
    const struct sql_read *reads;           /* store/sql.h; likewise without a row type */
    const struct sqlite_family *sqlite;     /* sqlite_impl.h */
    const struct postgres_family *postgres; /* postgres_impl.h */
};
#define STORE_FAMILIES_MAX 12

/* Called before a store is opened.  The family stays in use until the process ends; a second call
 * with the same family changes nothing. */
void store_family_add(const struct store_family *family);
/* All families; from now on none can be added. */
const struct store_family *const *store_families(size_t *ret_n);

#endif
