/* SPDX-License-Identifier: Apache-2.0 */
/* Administration of keys: the request for a new key, its rows, and the JSON form of a row. */
#ifndef HOLDFAST_IDENTITY_KEY_ADMIN_H
#define HOLDFAST_IDENTITY_KEY_ADMIN_H

#include "base/random.h"
#include "identity/key.h"
#include "json/write.h"
#include "store/store.h"

#define KEY_NAME_MAX 200
#define KEY_LIFE_MIN_MS 1000
#define KEY_LIFE_MAX_MS (INT64_C(10) * 366 * 24 * 3600 * 1000)

struct key_request {
    struct str tenant; /* absent: default */
    struct str name;   /* absent: the key has no name */
    enum role role;
    struct str user; /* a user name; absent: the key is its own owner */
    struct scopes scopes;
    int64_t expires_in_ms; /* 0: never */
};
must_check bool key_request_check(const struct key_request *r, struct error *err);
/* The body of POST /api/v1/keys, in mem. */
struct str key_request_write(const struct key_request *r, struct arena *mem);

/* A key to be stored: the ops are one transaction. */
struct key_new {
    struct key_text text; /* wipe it */
    struct principal who;
    struct tenant_row tenant;
    struct user_row user;
    struct key_row row;
    struct store_op ops[3];
    size_t n;
    char user_id[UUID_TEXT];
};
/* `ret` points into itself and into mem.  Neither may move until the ops are written. */
void key_new_fill(const struct key_request *r, int64_t now_ms, struct arena *mem,
                  struct key_new *ret);
/* The id of a user without an issuer of tokens. */
void key_user_id(struct str tenant, struct str name, char ret[UUID_TEXT]);

/* Writes members of an open object: id, tenant, name, role … */
void key_write(struct js_writer *w, const struct key_row *row);

#endif
