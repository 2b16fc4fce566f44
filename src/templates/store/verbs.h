/* SPDX-License-Identifier: Apache-2.0 */
/* The read verbs of templates: a list beside STORE_VERBS (store/verbs.h). */
#ifndef HOLDFAST_TEMPLATES_STORE_VERBS_H
#define HOLDFAST_TEMPLATES_STORE_VERBS_H

#include "store/store.h"
#include "templates/store/rows.h"

#define TEMPLATE_VERBS(X)                                                                          \
    X(TEMPLATE, template, ROW)                                                                     \
    X(TEMPLATES_PAGE, templates_page, PAGE)                                                        \
    X(TEMPLATE_VERSIONS, template_versions, PAGE)

enum template_verb {
    TEMPLATE_VERBS_BEFORE = VERB_FAMILY + 20 - 1,
    TEMPLATE_VERBS(VERB_ENUM) TEMPLATE_VERBS_END,
};
_Static_assert(TEMPLATE_VERBS_END <= VERB_COUNT, "raise VERB_COUNT");

/* One version; 0: the newest. */
must_check bool store_template(struct store *s, struct str tenant, struct str name, int64_t version,
                               struct arena *mem, struct template_row **ret_row, struct error *err);
/* The newest version of each template of a tenant, sorted by name (bytewise); `after` is a name. */
must_check bool store_templates_page(struct store *s, struct str tenant, struct str after,
                                     unsigned limit, struct arena *mem,
                                     struct template_row **ret_rows, size_t *ret_n,
                                     struct error *err);
/* The versions of one template without their specs, newest first; `before` is a version (0: from the
 * newest). */
must_check bool store_template_versions(struct store *s, struct str tenant, struct str name,
                                        int64_t before, unsigned limit, struct arena *mem,
                                        struct template_row **ret_rows, size_t *ret_n,
                                        struct error *err);

#endif
