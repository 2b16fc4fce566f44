/* SPDX-License-Identifier: Apache-2.0 */
/* /audit/holds: a part of REST (api/api.h). */
#ifndef HOLDFAST_HOLDS_API_HOLDS_H
#define HOLDFAST_HOLDS_API_HOLDS_H

#include "api/api.h"

extern const struct api_part holds_api; /* table.c; for api_add() */

struct hold_body {
    struct str tenant;
    struct str session, user; /* one of them */
    struct str reason;
};
extern const struct api_body body_hold;

/* list.c */
void api_list_holds(struct api_call *c);
/* change.c */
void api_create_hold(struct api_call *c);
void api_release_hold(struct api_call *c);

#endif
