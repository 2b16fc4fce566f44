/* SPDX-License-Identifier: Apache-2.0 */
/* The operations on erasures: a part of the table of REST (api/api.h). */
#include "erasure/api/erasures.h"

#include "api/bodies.h"
#include "erasure/store/rows.h"
#include "store/store.h"

#include <stddef.h>

static const struct api_param list_params[] = {
    {.name = "tenant",
     .in = "query",
     .type = "string",
     .min = 1,
     .max = 64,
     .help = "The caller's tenant. On the unix socket: any tenant (default: all)."},
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
static const struct api_param id_params[] = {
    {.name = "id",
     .in = "path",
     .type = "string",
     .is_required = true,
     .min = 1,
     .max = 255,
     .help = "The erasure's id."},
    {0},
};

static const struct api_kind kind_text = {.type = "string"},
                             kind_tenant = {.type = "string", .pattern = "^[A-Za-z0-9._-]{1,64}$"};
#define FIELD(NAME, MEMBER, KIND, MAX, HELP)                                                       \
    .name = (NAME), .kind = JS_BIND_CUSTOM, .read = body_read_text, .data = &(KIND), .min = 1,     \
    .max = (MAX), .offset = offsetof(struct erasure_body, MEMBER), .help = (HELP)
static const struct js_field erasure_fields[] = {
    {FIELD("tenant", tenant, kind_tenant, 64,
           "Tenant: the caller's own. On the unix socket: any tenant (default: `default`).")},
    {FIELD("username", user, kind_text, 200, "User to erase, by name or id."), .required = true},
    {FIELD("reason", reason, kind_text, ERASURE_REASON_MAX / 4,
           "Reason, for people. It stays on record, so it may not have the name of the user.")},
    {.name = "dry_run",
     .kind = JS_BIND_BOOL,
     .offset = offsetof(struct erasure_body, dry_run),
     .help = "Only counts what there is of the person; changes nothing."},
    {0},
};
const struct api_body body_erasure = {.name = "AuditErasureCreate", .fields = erasure_fields};

static const struct api_answer list_answers[] = {
    {200, "AuditErasureList", "A page of erasures, newest first."}, {0}};
static const struct api_answer get_answers[] = {{200, "AuditErasure", "The erasure."}, {0}};
static const struct api_answer create_answers[] = {
    {200, "AuditErasureCount", "With dry_run: what there is of the person."},
    {201, "AuditErasure", "The person has no access any more; the rest is being removed."},
    {409, "Problem", "The user is held, or is being erased already."},
    {413, "Problem", "The body is too large."},
    {415, "Problem", "The body is not JSON."},
    {0},
};

static const char *const states[] = {"running", "done", NULL};
static const struct api_member erasure_members[] = {
    {"id", "string", NULL, true, "uuid", NULL, "Id of the erasure."},
    {"tenant", "string", NULL, true, NULL, NULL, "Tenant."},
    {"user_id", "string", NULL, true, "uuid", NULL, "Id of the user; the name is gone."},
    {"state", "string", NULL, true, NULL, states, "done: nothing remains to be removed."},
    {"made_by", "string", NULL, true, NULL, NULL,
     "Owner of the credential that began it; local: none."},
    {"reason", "string", NULL, false, NULL, NULL, "Reason that was given."},
    {"bodies", "integer", NULL, true, NULL, NULL, "Bodies of events that were removed so far."},
    {"body_bytes", "integer", NULL, true, NULL, NULL, "Their bytes."},
    {"sessions", "integer", NULL, true, NULL, NULL, "Sessions that were deleted so far."},
    {"held_sessions", "integer", NULL, true, NULL, NULL,
     "Sessions that were left with their bodies, because they are held."},
    {"created_at", "string", NULL, true, "date-time", NULL, "Time of the beginning."},
    {"done_at", "string", NULL, false, "date-time", NULL, "Time of the end."},
    {0},
};
static const struct api_member count_members[] = {
    {"tenant", "string", NULL, true, NULL, NULL, "Tenant."},
    {"user_id", "string", NULL, true, "uuid", NULL, "Id of the user."},
    {"held", "boolean", NULL, true, NULL, NULL, "Whether the user is held."},
    {"sessions", "integer", NULL, true, NULL, NULL, "Sessions that would be deleted."},
    {"held_sessions", "integer", NULL, true, NULL, NULL, "Sessions that would be left."},
    {"calls", "integer", NULL, true, NULL, NULL,
     "Calls of the sessions that would be deleted; their bodies would be removed."},
    {"keys", "integer", NULL, true, NULL, NULL, "Keys that would be revoked."},
    {"sign_ins", "integer", NULL, true, NULL, NULL, "Sign-ins that would end."},
    {0},
};
static const struct api_member list_members[] = {
    {"erasures", "array", "AuditErasure", true, NULL, NULL, "The erasures, newest first."},
    {"count", "integer", NULL, true, NULL, NULL, "Number of rows in the page."},
    {"next_cursor", "string|null", NULL, true, NULL, NULL, "Cursor of the next page."},
    {0},
};
static const struct api_schema schemas[] = {
    {"AuditErasure", erasure_members, "A person whose bodies and names are removed."},
    {"AuditErasureCount", count_members, "What there is of a person."},
    {"AuditErasureList", list_members, "A page of erasures.", API_LINK},
    {0},
};

#define ERASURES "/api/v1/audit/erasures"
#define OP(METHOD, PATTERN, ID, ACCESS, RUN, SUMMARY)                                              \
    .method = (METHOD), .pattern = (PATTERN), .id = (ID), .access = (ACCESS), .run = (RUN),        \
    .summary = (SUMMARY)

static const struct api_operation operations[] = {
    {OP("GET", ERASURES, "listAuditErasures", API_AUDIT, api_list_erasures,
        "Lists the persons who were erased, and those who are being erased."),
     .params = list_params, .answers = list_answers},
    {OP("POST", ERASURES, "createAuditErasure", API_ADMIN, api_create_erasure,
        "Erases a person: removes the bodies of the person's events and every name of the person."),
     .params = no_params, .body = &body_erasure, .answers = create_answers},
    {OP("GET", ERASURES "/{id}", "getAuditErasure", API_AUDIT, api_get_erasure,
        "Returns an erasure and how far it is."),
     .params = id_params, .answers = get_answers},
    {0},
};

static const struct api_example examples[] = {
    {"bodies", "24"},
    {0},
};

const struct api_part erasures_api = {
    .operations = operations,
    .after = "verifyAudit",
    .schemas = schemas,
    .after_schema = "AuditProof",
    .examples = examples,
};
