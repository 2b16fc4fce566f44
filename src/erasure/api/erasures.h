/* SPDX-License-Identifier: Apache-2.0 */
/* /audit/erasures: a part of REST (api/api.h). */
#ifndef HOLDFAST_ERASURE_API_ERASURES_H
#define HOLDFAST_ERASURE_API_ERASURES_H

#include "api/api.h"

extern const struct api_part erasures_api; /* table.c; for api_add() */

struct erasure_body {
    struct str tenant, user, reason;
    bool dry_run;
};
extern const struct api_body body_erasure;

/* begin.c */
void api_create_erasure(struct api_call *c);
/* list.c */
void api_list_erasures(struct api_call *c);
void api_get_erasure(struct api_call *c);

#endif
