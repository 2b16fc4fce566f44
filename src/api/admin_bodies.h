/* SPDX-License-Identifier: Apache-2.0 */
/* Request bodies of the operations for administrators. */
#ifndef HOLDFAST_API_ADMIN_BODIES_H
#define HOLDFAST_API_ADMIN_BODIES_H

#include "api/api.h"
#include "identity/key_admin.h"

struct approve_body {
    struct str tool, digest;
};

struct user_body {
    struct str tenant, username, password;
    enum role role;
};
struct user_patch_body {
    struct str password; /* absent: not sent */
    enum { DISABLED_UNSAID, DISABLED_FALSE, DISABLED_TRUE } disabled;
};

/* body_key binds a struct key_request. */
struct secret_body {
    struct str value;
};
extern const struct api_body body_secret;
extern const struct api_body body_key, body_approve, body_user, body_user_patch;

#endif
