/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of templates: named set-ups of sessions, every version of them. */
#ifndef HOLDFAST_TEMPLATES_STORE_ROWS_H
#define HOLDFAST_TEMPLATES_STORE_ROWS_H

#include "store/rows.h"

#define TEMPLATE_NAME_MAX 64
#define TEMPLATES_MAX 200         /* of one tenant */
#define TEMPLATE_VERSIONS_MAX 100 /* of one template */
#define TEMPLATE_SPEC_MAX ((size_t)64 << 10)

struct template_row {
    struct str tenant, name;
    int64_t version; /* from 1, without gaps */
    int64_t created_ms;
    struct str created_by; /* owner of the principal that wrote it */
    struct str spec;       /* JSON (templates/spec.h); absent in lists of versions */
};

/* The row of both ops. */
struct template_change {
    struct template_row row;
    /* The version that must be the newest; 0: there must be no such template; < 0: any. */
    int64_t expected;
};

#endif
