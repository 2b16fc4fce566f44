/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of holds: sessions and users that are exempt from every removal. */
#ifndef HOLDFAST_HOLDS_STORE_ROWS_H
#define HOLDFAST_HOLDS_STORE_ROWS_H

#include "store/rows.h"

#define HOLDS_MAX 1000           /* live holds of one tenant */
#define HOLDS_RELEASED_KEPT 1000 /* of one tenant, the newest ones */
#define HOLD_REASON_MAX 1000

enum hold_kind { HOLD_SESSION, HOLD_USER };

struct hold_row {
    struct str id; /* UUIDv7 */
    struct str tenant;
    enum hold_kind kind;
    struct str target; /* id of the session's or user's row */
    struct str reason; /* absent: none was given */
    struct str made_by;
    int64_t created_ms;
    int64_t released_ms; /* 0: it is live */
    struct str released_by;
};

/* What is held now, as the engine of retention compares it. */
enum held_kind { HELD_SESSION, HELD_OWNER };
struct held_row {
    struct str tenant;
    enum held_kind kind;
    /* A session's row id; or an owner: "user:…" of a held user, "key:…" of each key of that user. */
    struct str name;
};

#endif
