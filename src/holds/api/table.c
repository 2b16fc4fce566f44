/* SPDX-License-Identifier: Apache-2.0 */
/* The operations on holds: a part of the table of REST (api/api.h). */
#include "holds/api/holds.h"

#include "api/bodies.h"
#include "holds/store/rows.h"
#include "store/store.h"

#include <stddef.h>

static const char *const flags[] = {"0", "1", NULL};
static const struct api_param list_params[] = {
    {.name = "tenant",
     .in = "query",
     .type = "string",
     .min = 1,
     .max = 64,
     .help = "The caller's tenant. On the unix socket: any tenant (default: all)."},
    {.name = "all",
     .in = "query",
     .type = "string",
     .names = flags,
     .default_text = "0",
     .help = "1: also holds that were released."},
    {.name = "limit",
     .in = "query",
     .type = "integer",
     .min = 1,
     .max = STORE_PAGE_MAX,
     .default_text = "50",
     .help = "Largest number of rows in the page."},
    {.name = "cursor",
     .in = "query",
     .type = "string",
     .min = 1,
     .max = 2000,
     .help = "next_cursor of the previous page."},
    {0},
};
static const struct api_param no_params[] = {{0}};
static const struct api_param release_params[] = {
    {.name = "id",
     .in = "path",
     .type = "string",
     .is_required = true,
     .min = 1,
     .max = 255,
     .help = "The hold's id."},
    {0},
};

static const struct api_kind kind_text = {.type = "string"},
                             kind_tenant = {.type = "string", .pattern = "^[A-Za-z0-9._-]{1,64}$"};
#define FIELD(NAME, MEMBER, KIND, MAX, HELP)                                                       \
    {                                                                                              \
        .name = (NAME), .kind = JS_BIND_CUSTOM, .read = body_read_text, .data = &(KIND), .min = 1, \
        .max = (MAX), .offset = offsetof(struct hold_body, MEMBER), .help = (HELP)                 \
    }
static const struct js_field hold_fields[] = {
    FIELD("tenant", tenant, kind_tenant, 64,
          "Tenant: the caller's own. On the unix socket: any tenant (default: `default`)."),
    FIELD("session", session, kind_text, 255,
          "Session to hold: its session_id, the id of its row, or at least 4 characters that only "
          "one session begins with. Either this or user is required."),
    FIELD("user", user, kind_text, 200, "User to hold, by name or id."),
    FIELD("reason", reason, kind_text, HOLD_REASON_MAX / 4, "Reason, for people."),
    {0},
};
const struct api_body body_hold = {.name = "AuditHoldCreate", .fields = hold_fields};

static const struct api_answer list_answers[] = {
    {200, "AuditHoldList", "A page of holds, newest first."}, {0}};
static const struct api_answer create_answers[] = {
    {201, "AuditHold", "The hold."},
    {409, "Problem", "The session or user is held already."},
    {413, "Problem", "The body is too large."},
    {415, "Problem", "The body is not JSON."},
    {0},
};
static const struct api_answer release_answers[] = {
    {200, "AuditHold", "The hold is released; its row stays for the record."}, {0}};

static const char *const kinds[] = {"session", "user", NULL};
static const struct api_member hold_members[] = {
    {"id", "string", NULL, true, "uuid", NULL, "Id of the hold."},
    {"tenant", "string", NULL, true, NULL, NULL, "Tenant."},
    {"kind", "string", NULL, true, NULL, kinds, "What is held."},
    {"target", "string", NULL, true, "uuid", NULL, "Id of the session's row, or of the user."},
    {"name", "string", NULL, false, NULL, NULL,
     "session_id of the session, or name of the user; absent if it is gone."},
    {"reason", "string", NULL, false, NULL, NULL, "Reason that was given."},
    {"made_by", "string", NULL, true, NULL, NULL,
     "Owner of the credential that made it; local: none."},
    {"created_at", "string", NULL, true, "date-time", NULL, "Time of creation."},
    {"released_at", "string", NULL, false, "date-time", NULL, "Time of the release."},
    {"released_by", "string", NULL, false, NULL, NULL, "Owner of the credential that released it."},
    {0},
};
static const struct api_member hold_list_members[] = {
    {"holds", "array", "AuditHold", true, NULL, NULL, "The holds, newest first."},
    {"count", "integer", NULL, true, NULL, NULL, "Number of rows in the page."},
    {"next_cursor", "string|null", NULL, true, NULL, NULL, "Cursor of the next page."},
    {0},
};
static const struct api_schema schemas[] = {
    {"AuditHold", hold_members, "A session or user that is exempt from every removal."},
    {"AuditHoldList", hold_list_members, "A page of holds.", API_LINK},
    {0},
};

#define HOLDS "/api/v1/audit/holds"
#define OP(METHOD, PATTERN, ID, ACCESS, RUN, SUMMARY)                                              \
    .method = (METHOD), .pattern = (PATTERN), .id = (ID), .access = (ACCESS), .run = (RUN),        \
    .summary = (SUMMARY)

static const struct api_operation operations[] = {
    {OP("GET", HOLDS, "listAuditHolds", API_AUDIT, api_list_holds,
        "Lists the sessions and users that are held."),
     .params = list_params, .answers = list_answers},
    {OP("POST", HOLDS, "createAuditHold", API_ADMIN, api_create_hold,
        "Holds a session or a user: nothing of it is removed until the hold is released."),
     .params = no_params, .body = &body_hold, .answers = create_answers},
    {OP("DELETE", HOLDS "/{id}", "releaseAuditHold", API_ADMIN, api_release_hold,
        "Releases a hold."),
     .params = release_params, .answers = release_answers},
    {0},
};

static const struct api_example examples[] = {
    {"session", "\"ses_Heefe51k\""},
    {"made_by", "\"user:01932c5e-7d1a-7b7e-9a52-3f1f6a0c2b41\""},
    {0},
};

const struct api_part holds_api = {
    .operations = operations,
    .after = "verifyAudit",
    .schemas = schemas,
    .after_schema = "AuditProof",
    .examples = examples,
};
