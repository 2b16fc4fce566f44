/* SPDX-License-Identifier: Apache-2.0 */
/* Administration of users: the requested change, its store op, and the JSON form of a sign-in. */
#ifndef HOLDFAST_IDENTITY_USER_ADMIN_H
#define HOLDFAST_IDENTITY_USER_ADMIN_H

#include "base/random.h"
#include "json/write.h"
#include "store/store.h"

enum user_verb { USER_CREATE, USER_PASSWD, USER_DISABLE, USER_ENABLE, USER_REVOKE };

struct user_request {
    enum user_verb verb;
    struct str tenant; /* absent: default */
    struct str name;
    enum role role;   /* for create */
    struct str hash;  /* for create and passwd: password_hash() */
    struct str login; /* for revoke: one sign-in; absent: all */
};
/* Checks the names; the password was checked before it was hashed. */
must_check bool user_request_check(const struct user_request *r, struct error *err);
const char *user_verb_name(enum user_verb verb); /* "create", "passwd" … */

/* The store op of a request. */
struct user_change {
    struct principal who;
    struct user_row user;
    struct login_row login;
    struct store_op op;
    char user_id[UUID_TEXT];
};
/* `ret` points into itself and into the memory of `r`. */
void user_change_fill(const struct user_request *r, int64_t now_ms, struct user_change *ret);
/* Checks the verdict of the op; on false, err says why. */
must_check bool user_change_check(const struct user_request *r, const struct user_change *c,
                                  struct error *err);

/* The name that a new user gets: with composed letters (NFC), because a person cannot see how an
 * accent is encoded.  In mem, or `name` itself if it is so. */
struct str user_name_composed(struct str name, struct arena *mem);
/* A user without issuer, by name, in either encoding of its accents.  Users of older versions have
 * the name that was typed, so the name as given comes first. */
must_check bool user_find(struct store *s, struct str tenant, struct str name, struct arena *mem,
                          struct user_row **ret_row, struct error *err);

/* Writes members of an open object: id, username, tenant_id, role, disabled. */
void user_write(struct js_writer *w, const struct user_row *row);
/* Writes members of an open object: id, device, ip_address … */
void login_write(struct js_writer *w, const struct login_row *row);
/* Writes {"sessions":[…],"count":…}. */
void logins_write(struct buf *out, const struct login_row *rows, size_t n);

#endif
