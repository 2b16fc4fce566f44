/* SPDX-License-Identifier: Apache-2.0 */
/* The operations on shares of sessions: a part of REST (api/api.h). */
#ifndef HOLDFAST_SESSION_SHARE_API_SHARE_API_H
#define HOLDFAST_SESSION_SHARE_API_SHARE_API_H

#include "api/api.h"
#include "session/sharing.h"

extern const struct api_part share_api; /* table.c; for api_add() */

/* The body of POST …/shares. */
struct share_body {
    struct share_wish wish;
    bool wants_code; /* "grantee": "code" */
};
struct join_body {
    struct str code, session; /* the code counts if both are sent */
    struct str client_name;
    int former_owner; /* sharing_call.former */
};
extern const struct api_body body_share, body_join;

/* shares.c */
void api_create_share(struct api_call *c);
void api_list_shares(struct api_call *c);
void api_end_share(struct api_call *c);
void api_join_session(struct api_call *c);
void api_fork_session(struct api_call *c);

#endif
