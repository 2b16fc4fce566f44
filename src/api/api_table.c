/* SPDX-License-Identifier: Apache-2.0 */
/* The operations under /api/v1, without those of other folders (parts.c).  These rows route the
 * requests and are the source of the OpenAPI document, so the two cannot differ. */
#include "api/api.h"
#include "api/admin_bodies.h"
#include "api/admin_table.h"
#include "api/bodies.h"

static const char *const statuses[] = {"active", "idle", "expired", "terminated", NULL};
static const char *const client_types[] = {"claude-code", "ide", "agent", "cli", NULL};
static const char *const origins[] = {"rest",  "tool",     "transport", "derived",
                                      "keyed", "injected", NULL};
static const char *const outcomes[] = {"ok",        "tool_error", "error",         "timeout",
                                       "cancelled", "refused",    "upstream_lost", "indeterminate",
                                       "open",      NULL};

/* Parameters. */

#define PARAM_ONCE                                                                                 \
    {                                                                                              \
        .name = "Idempotency-Key", .in = "header", .type = "string", .min = 1, .max = 255,         \
        .help = "The same key with the same request within 24 hours gives the same answer, with "  \
                "Idempotency-Replayed: true, and has no further effect."                           \
    }
#define PARAM_SESSION                                                                              \
    {                                                                                              \
        .name = "id", .in = "path", .type = "string", .is_required = true, .min = 1, .max = 255,   \
        .help = "The session's session_id."                                                        \
    }
#define PARAM_LIMIT                                                                                \
    {                                                                                              \
        .name = "limit", .in = "query", .type = "integer", .min = 1, .max = STORE_PAGE_MAX,        \
        .default_text = "50", .help = "Rows in a page."                                            \
    }
#define PARAM_CURSOR                                                                               \
    {                                                                                              \
        .name = "cursor", .in = "query", .type = "string", .min = 1, .max = 200,                   \
        .help = "next_cursor of the page before."                                                  \
    }
#define PARAM_CLIENT_TYPE                                                                          \
    {                                                                                              \
        .name = "client_type", .in = "query", .type = "string",                                    \
        .help = "Only sessions of this client_type: claude-code, ide, agent or cli."               \
    }
#define PARAM_IF_NONE_MATCH                                                                        \
    {                                                                                              \
        .name = "If-None-Match", .in = "header", .type = "string",                                 \
        .help = "An ETag that is known already: 304 while it is still so."                         \
    }

static const struct api_param no_params[] = {{0}};
static const struct api_param once_params[] = {PARAM_ONCE, {0}};
static const struct api_param session_params[] = {PARAM_SESSION, {0}};
static const struct api_param session_once_params[] = {PARAM_SESSION, PARAM_ONCE, {0}};
static const struct api_param session_get_params[] = {PARAM_SESSION, PARAM_IF_NONE_MATCH, {0}};
static const struct api_param openapi_params[] = {PARAM_IF_NONE_MATCH, {0}};
static const struct api_param login_params[] = {
    {.name = "id",
     .in = "path",
     .type = "string",
     .is_required = true,
     .min = 1,
     .max = 255,
     .help = "The sign-in's id."},
    {0},
};
static const struct api_param session_by_id_params[] = {
    {.name = "uuid",
     .in = "path",
     .type = "string",
     .is_required = true,
     .min = 1,
     .max = 255,
     .help = "The session's own id."},
    PARAM_IF_NONE_MATCH,
    {0},
};
static const struct api_param list_params[] = {
    {.name = "status",
     .in = "query",
     .type = "string",
     .default_text = "active,idle",
     .help = "Statuses with commas between them (active, idle, expired, terminated), or all."},
    PARAM_CLIENT_TYPE,
    PARAM_LIMIT,
    PARAM_CURSOR,
    {0},
};
static const struct api_param active_params[] = {PARAM_CLIENT_TYPE, PARAM_LIMIT, PARAM_CURSOR, {0}};
static const struct api_param patch_params[] = {
    PARAM_SESSION,
    {.name = "If-Match",
     .in = "header",
     .type = "string",
     .is_required = true,
     .help = "The session's ETag; its version counts, not its counters."},
    {0},
};
static const struct api_param end_params[] = {
    PARAM_SESSION,
    {.name = "reason",
     .in = "query",
     .type = "string",
     .max = 255,
     .default_text = "client request",
     .help = "Why it ends."},
    {0},
};
static const struct api_param since_params[] = {
    {.name = "since",
     .in = "query",
     .type = "string",
     .default_text = "24h",
     .help = "How far to look back, to the full minute: sessions created or used since."},
    {0},
};
static const struct api_param executions_params[] = {
    PARAM_SESSION,
    PARAM_LIMIT,
    PARAM_CURSOR,
    {.name = "bodies",
     .in = "query",
     .type = "boolean",
     .default_text = "true",
     .help = "With arguments and results as they are kept."},
    {0},
};
static const struct api_param context_write_params[] = {
    PARAM_SESSION,
    {.name = "If-Match",
     .in = "header",
     .type = "string",
     .help = "The context's ETag; \"0\" while there is none."},
    {0},
};

/* Answers. */

#define CONFLICT_ONCE                                                                              \
    {409, "Problem", "A request with this Idempotency-Key is under way."},                         \
    {                                                                                              \
        422, "Problem", "The Idempotency-Key came with another request before."                    \
    }
#define UNCHANGED                                                                                  \
    {                                                                                              \
        304, NULL, "It is still what If-None-Match names."                                         \
    }
#define NOT_ACTIVE                                                                                 \
    {                                                                                              \
        409, "Problem", "The session is not active."                                               \
    }
#define STALE                                                                                      \
    {                                                                                              \
        412, "Problem", "It has changed since it was read."                                        \
    }
#define TOO_LARGE                                                                                  \
    {                                                                                              \
        413, "Problem", "The body or the document is too large."                                   \
    }
#define BAD_TYPE                                                                                   \
    {                                                                                              \
        415, "Problem", "The body is not JSON."                                                    \
    }

const struct api_answer api_common_answers[] = {
    {400, "Problem", "The request is not acceptable."},
    {401, "Problem", "No tenant: the credential is missing or does not hold."},
    {403, "Problem", "The role, the Host or the Origin does not permit it."},
    {404, "Problem", "There is none, or none that the caller may see."},
    {429, "Problem", "The tenant or the key has used up what it may."},
    {500, "Problem", "A fault of ours."},
    {503, "Problem", "The store cannot be used just now."},
    {0},
};
static const struct api_answer create_answers[] = {
    {201, "Session", "The new session; Location and ETag name it."},
    {409, "Problem", "The session_id is taken, or a request with this key is under way."},
    {422, "Problem", "The Idempotency-Key came with another request before."},
    {429, "Problem",
     "The tenant has all the sessions it may, or it or the key has used up something else."},
    TOO_LARGE,
    BAD_TYPE,
    {0},
};
static const struct api_answer list_answers[] = {{200, "SessionList", "A page of sessions."}, {0}};
static const struct api_answer get_answers[] = {{200, "Session", "The session."}, UNCHANGED, {0}};
static const struct api_answer patch_answers[] = {
    {200, "Session", "The session as it is now."}, NOT_ACTIVE, STALE, TOO_LARGE, BAD_TYPE,
    {428, "Problem", "If-Match is missing."},      {0},
};
static const struct api_answer end_answers[] = {{200, "Message", "It is over."}, {0}};
static const struct api_answer use_answers[] = {
    {200, "Message", "Noted; an idle session is active again."}, CONFLICT_ONCE, {0}};
static const struct api_answer record_answers[] = {
    {200, "Message", "All of it is durable."},
    {409, "Problem", "The session is not active, or a request with this key is under way."},
    {422, "Problem", "The Idempotency-Key came with another request before."},
    TOO_LARGE,
    BAD_TYPE,
    {0},
};
static const struct api_answer executions_answers[] = {
    {200, "ExecutionList", "A page, newest first."}, {0}};
static const struct api_answer validate_answers[] = {
    {200, "SessionValidity", "Whether it may be used; one that may not is no error."}, {0}};
static const struct api_answer refresh_answers[] = {
    {200, "SessionRefreshed", "The new end."},
    {409, "Problem", "The session is not active, or a request with this key is under way."},
    {422, "Problem", "The Idempotency-Key came with another request before."},
    TOO_LARGE,
    BAD_TYPE,
    {0},
};
static const struct api_answer totals_answers[] = {{200, "SessionTotals", "Totals."}, {0}};
static const struct api_answer context_get_answers[] = {
    {200, "Context", "The document; {} while there is none."}, UNCHANGED, {0}};
static const struct api_answer context_put_answers[] = {
    {200, "Context", "The document as it is now."},
    NOT_ACTIVE,
    STALE,
    TOO_LARGE,
    BAD_TYPE,
    {428, "Problem", "There is a document already, and If-Match is missing."},
    {0},
};
static const struct api_answer context_patch_answers[] = {
    {200, "Context", "The document as it is now."}, NOT_ACTIVE, STALE, TOO_LARGE, BAD_TYPE, {0}};
static const struct api_answer edge_answers[] = {
    {200, "EdgeTenant", "The credential holds."}, TOO_LARGE, BAD_TYPE, {0}};
static const struct api_answer login_answers[] = {
    {200, "Tokens", "Signed in."}, TOO_LARGE, BAD_TYPE, {0}};
static const struct api_answer refresh_login_answers[] = {
    {200, "Tokens", "The next tokens; the refresh token that was sent is used up."},
    {409, "Problem", "Another request with this refresh token was faster."},
    TOO_LARGE,
    BAD_TYPE,
    {0},
};
static const struct api_answer end_login_answers[] = {{200, "Message", "Signed out."}, {0}};
static const struct api_answer logins_answers[] = {{200, "SignInList", "The devices."}, {0}};
static const struct api_answer openapi_answers[] = {
    {200, "OpenApi", "The document."}, UNCHANGED, {0}};
static const struct api_answer alias_get_answers[] = {{200, "ContextEnvelope", "The document."},
                                                      {0}};
static const struct api_answer alias_put_answers[] = {
    {200, "ContextEnvelope", "The document as it is now."},
    NOT_ACTIVE,
    STALE,
    TOO_LARGE,
    BAD_TYPE,
    {0}};

/* Schemas of answers. */

static const struct api_member session_members[] = {
    {"id", "string", NULL, true, "uuid", NULL, "The row's own id."},
    {"session_id", "string", NULL, true, NULL, NULL, "Its name: an MCP client's handle too."},
    {"tenant_id", "string", NULL, true, NULL, NULL, "Whose it is."},
    {"user_id", "string", NULL, false, "uuid", NULL, "Who made it."},
    {"edge_mcp_id", "string", NULL, true, NULL, NULL, "The node its client is connected to."},
    {"client_name", "string", NULL, false, NULL, NULL, "What the client calls itself."},
    {"client_type", "string", NULL, false, NULL, client_types, "What kind of client it is."},
    {"client_version", "string", NULL, false, NULL, NULL, "The client's version."},
    {"status", "string", NULL, true, NULL, statuses, "As of now."},
    {"initialized", "boolean", NULL, true, NULL, NULL, "The client has shaken hands."},
    {"core_session_id", "string", NULL, false, NULL, NULL,
     "The session of another system, as its client said, or the Mcp-Session-Id of the first HTTP "
     "server that it used."},
    {"passthrough_auth", "object", "PassthroughAuth", false, NULL, NULL, "That there is some."},
    {"profile_context_keys", "array", NULL, false, NULL, NULL,
     "What its client told it when it began: the keys, never the values."},
    {"connection_metadata", "object", NULL, false, NULL, NULL,
     "The client's metadata, and ip_address, user_agent, protocol, tls_version."},
    {"context_id", "string", NULL, false, "uuid", NULL, "Its context document."},
    {"last_activity_at", "string", NULL, true, "date-time", NULL, "Its last use."},
    {"tool_execution_count", "integer", NULL, true, NULL, NULL, "Tools run in it."},
    {"total_tokens_used", "integer", NULL, true, NULL, NULL, "Tokens used in it."},
    {"created_at", "string", NULL, true, "date-time", NULL, "When it was made."},
    {"expires_at", "string", NULL, false, "date-time", NULL, "When it ends by itself."},
    {"terminated_at", "string", NULL, false, "date-time", NULL, "When it ended."},
    {"termination_reason", "string", NULL, false, NULL, NULL, "Why it ended."},
    {"origin", "string", NULL, true, NULL, origins, "How it came to be."},
    {"is_expired", "boolean", NULL, true, NULL, NULL, "Its life is over."},
    {"should_refresh", "boolean", NULL, true, NULL, NULL,
     "It is live, and a fifth of its life or less is left."},
    {"session_age", "integer", NULL, true, NULL, NULL,
     "Seconds since it was made. It does not count for the ETag."},
    {0},
};
static const struct api_member auth_members[] = {
    {"has_auth", "boolean", NULL, true, NULL, NULL, "Credentials are kept."},
    {"services", "array", NULL, true, NULL, NULL, "For these services."},
    {0},
};
static const struct api_member session_list_members[] = {
    {"sessions", "array", "Session", true, NULL, NULL, "Newest first."},
    {"count", "integer", NULL, true, NULL, NULL, "Rows in this answer."},
    {"next_cursor", "string|null", NULL, true, NULL, NULL, "Where the next page begins."},
    {0},
};
static const struct api_member execution_members[] = {
    {"id", "string", NULL, true, "uuid", NULL, "Its name."},
    {"session_id", "string", NULL, true, "uuid", NULL, "The id of the session's row."},
    {"server", "string", NULL, false, NULL, NULL, "Which server ran it; absent when told."},
    {"tool_name", "string", NULL, true, NULL, NULL, "Which tool."},
    {"tool_id", "string", NULL, false, "uuid", NULL, "Its id."},
    {"arguments", NULL, NULL, false, NULL, NULL, "As kept: redacted, cut."},
    {"result", NULL, NULL, false, NULL, NULL, "As kept: redacted, cut."},
    {"outcome", "string", NULL, true, NULL, outcomes, "How it ended."},
    {"error", "string", NULL, false, NULL, NULL, "Why it failed."},
    {"duration_ms", "integer", NULL, false, NULL, NULL, "How long it took."},
    {"tokens_used", "integer", NULL, false, NULL, NULL, "As told."},
    {"executed_at", "string", NULL, true, "date-time", NULL, "When."},
    {0},
};
static const struct api_member execution_list_members[] = {
    {"executions", "array", "Execution", true, NULL, NULL, "Newest first."},
    {"count", "integer", NULL, true, NULL, NULL, "Rows in this answer."},
    {"next_cursor", "string|null", NULL, true, NULL, NULL, "Where the next page begins."},
    {0},
};
static const struct api_member message_members[] = {
    {"message", "string", NULL, true, NULL, NULL, "What was done."},
    {"count", "integer", NULL, false, NULL, NULL, "How many, when an array was sent."},
    {0},
};
static const struct api_member validity_members[] = {
    {"valid", "boolean", NULL, true, NULL, NULL, "It may be used."},
    {"session_id", "string", NULL, true, NULL, NULL, "Its name."},
    {"status", "string", NULL, true, NULL, statuses, "As of now."},
    {"expires_at", "string", NULL, false, "date-time", NULL, "When it ends by itself."},
    {"termination_reason", "string", NULL, false, NULL, NULL, "Why it ended."},
    {0},
};
static const struct api_member refreshed_members[] = {
    {"message", "string", NULL, true, NULL, NULL, "session refreshed"},
    {"session_id", "string", NULL, true, NULL, NULL, "Its name."},
    {"expires_at", "string", NULL, true, "date-time", NULL, "When it ends now."},
    {0},
};
static const struct api_member totals_members[] = {
    {"active_sessions", "integer", NULL, true, NULL, NULL, "Live now."},
    {"total_sessions", "integer", NULL, true, NULL, NULL, "Created or used since."},
    {"total_tool_executions", "integer", NULL, true, NULL, NULL, "In them."},
    {"total_tokens_used", "integer", NULL, true, NULL, NULL, "In them."},
    {"average_session_time_minutes", "number", NULL, true, NULL, NULL,
     "From creation to end or last use."},
    {0},
};
static const struct api_member edge_members[] = {
    {"success", "boolean", NULL, true, NULL, NULL, "Always true."},
    {"tenant_id", "string", NULL, true, NULL, NULL, "Whose credential it is."},
    {0},
};
static const struct api_member envelope_members[] = {
    {"success", "boolean", NULL, true, NULL, NULL, "Always true."},
    {"context", "object", NULL, true, NULL, NULL, "The document."},
    {0},
};
static const struct api_member problem_members[] = {
    {"type", "string", NULL, true, "uri", NULL, "urn:holdfast:problem:CODE"},
    {"title", "string", NULL, true, NULL, NULL, "What the code means."},
    {"status", "integer", NULL, true, NULL, NULL, "The HTTP status."},
    {"detail", "string", NULL, true, NULL, NULL, "What to do about it."},
    {"code", "string", NULL, true, NULL, NULL, "See holdfast help CODE."},
    {"request_id", "string", NULL, true, NULL, NULL, "The X-Request-Id of the answer."},
    {"error", "string", NULL, true, NULL, NULL, "One short sentence."},
    {0},
};
static const struct api_member health_members[] = {
    {"status", "string", NULL, true, NULL, NULL, "ok"},
    {"reason", "string", NULL, false, NULL, NULL,
     "On /readyz, when it is not ready: why, where callers need not say who they are."},
    {"warning", "string", NULL, false, NULL, NULL,
     "On /readyz: what will end in trouble if it goes on."},
    {"servers", "object", NULL, false, NULL, NULL,
     "On /readyz: the state of each server by name, or, where callers must say who they are, how "
     "many "
     "are in each state."},
    {0},
};
static const struct api_member refusal_members[] = {
    {"error", "string", NULL, true, NULL, NULL, "One sentence."},
    {0},
};
static const char *const roles[] = {"admin", "member", "auditor", "service", NULL};
static const char *const token_types[] = {"Bearer", NULL};
static const struct api_member user_members[] = {
    {"id", "string", NULL, true, "uuid", NULL, "The user's id."},
    {"username", "string", NULL, true, NULL, NULL, "Its name."},
    {"tenant_id", "string", NULL, true, NULL, NULL, "Its tenant."},
    {"role", "string", NULL, true, NULL, roles, "What it may do."},
    {0},
};
static const struct api_member tokens_members[] = {
    {"access_token", "string", NULL, true, NULL, NULL, "Send it as Authorization: Bearer."},
    {"token_type", "string", NULL, true, NULL, token_types, "Always Bearer."},
    {"expires_in", "integer", NULL, true, NULL, NULL, "Seconds that the access token holds."},
    {"refresh_token", "string", NULL, true, NULL, NULL,
     "For POST /api/v1/auth/refresh: good once, for 30 days."},
    {"session_id", "string", NULL, true, "uuid", NULL, "The sign-in, as the list has it."},
    {"user", "object", "User", true, NULL, NULL, "Who signed in."},
    {0},
};
static const struct api_member login_members[] = {
    {"id", "string", NULL, true, "uuid", NULL, "The sign-in's id."},
    {"ip_address", "string", NULL, true, NULL, NULL, "Where it was used from last."},
    {"device_info", "object", NULL, true, NULL, NULL, "user_agent and device_name, where told."},
    {"created_at", "string", NULL, true, "date-time", NULL, "When the user signed in."},
    {"last_activity", "string", NULL, true, "date-time", NULL, "When it was refreshed last."},
    {"expires_at", "string", NULL, true, "date-time", NULL, "When it ends unless refreshed."},
    {"current", "boolean", NULL, true, NULL, NULL, "Whether it is the one that asks."},
    {0},
};
static const struct api_member login_list_members[] = {
    {"sessions", "array", "SignIn", true, NULL, NULL, "Newest first."},
    {"count", "integer", NULL, true, NULL, NULL, "How many."},
    {0},
};
const struct api_schema api_own_schemas[] = {
    {"Session", session_members, "A durable session.", API_ETAG},
    {"PassthroughAuth", auth_members, "Credentials are never shown, only that there are some."},
    {"SessionList", session_list_members, "A page of sessions.", API_LINK},
    {"Execution", execution_members, "One run of a tool."},
    {"ExecutionList", execution_list_members, "A page of executions.", API_LINK},
    {"Message", message_members, "What was done."},
    {"SessionValidity", validity_members, "Whether a session may be used."},
    {"SessionRefreshed", refreshed_members, "A session's new end."},
    {"SessionTotals", totals_members, "Sessions in numbers."},
    {"EdgeTenant", edge_members, "Who a credential is."},
    {"User", user_members, "A user."},
    {"Tokens", tokens_members, "What a user who signed in goes on with."},
    {"SignIn", login_members, "A device that a user is signed in on."},
    {"SignInList", login_list_members, "Devices that a user is signed in on."},
    {"Key", key_members, "A key, without its secret."},
    {"NewKey", new_key_members, "A key with its secret, which is never shown again."},
    {"KeyList", key_list_members, "A page of keys.", API_LINK},
    {"Server", server_members, "A server and how it is."},
    {"ServerList", server_list_members, "A page of servers.", API_LINK},
    {"Tool", tool_members, "A tool as last seen."},
    {"ToolList", tool_list_members, "A page of tools.", API_LINK},
    {"ToolDiff", tool_diff_members, "How a tool differs from what was approved."},
    {"ToolsApproved", approved_members, "What was approved."},
    {"Account", account_members, "A user, for administrators."},
    {"UserSignIn", account_login_members, "A device that a user is signed in on."},
    {"UserSignInList", account_login_list_members, "Devices that a user is signed in on."},
    {"Event", event_members, "An event of the audit, with the members that its kind has."},
    {"EventList", event_list_members, "A page of events.", API_LINK},
    {"AuditExecution", audit_execution_members, "One call of a server, or a request that reads."},
    {"AuditExecutionList", audit_execution_list_members, "A page of executions.", API_LINK},
    {"AuditExecutionDetail", audit_execution_detail_members, "An execution with its events."},
    {"AuditProof", verify_members, "Whether the chains are whole."},
    {"System", system_members, "The program itself."},
    {"Context", NULL, "A context document: any JSON object of at most 1 MiB.", API_ETAG},
    {"ContextEnvelope", envelope_members, "A context document, wrapped.", API_ETAG},
    {"OpenApi", NULL, "An OpenAPI 3.1 document.", API_ETAG},
    {"Refusal", refusal_members, "Why a request was turned away outside of /api/v1."},
    {"Health", health_members, "How the server is."},
    {"Problem", problem_members, "What went wrong (RFC 9457)."},
    {0},
};

/* Operations. */

#define SESSIONS "/api/v1/sessions"
#define SERVERS "/api/v1/servers"
#define USERS "/api/v1/users"
#define AUDIT "/api/v1/audit"
#define OP(METHOD, PATTERN, ID, ACCESS, RUN, SUMMARY)                                              \
    .method = (METHOD), .pattern = (PATTERN), .id = (ID), .access = (ACCESS), .run = (RUN),        \
    .summary = (SUMMARY), .is_sessions = true

#define AUTH_OP(METHOD, PATTERN, ID, ACCESS, RUN, SUMMARY)                                         \
    .method = (METHOD), .pattern = (PATTERN), .id = (ID), .access = (ACCESS), .run = (RUN),        \
    .summary = (SUMMARY)

const struct api_operation api_own_operations[] = {
    {OP("POST", SESSIONS, "createSession", API_WRITE, api_create_session, "Makes a session."),
     .is_once = true, .params = once_params, .body = &body_session, .answers = create_answers},
    {OP("GET", SESSIONS, "listSessions", API_READ, api_list_sessions,
        "The tenant's sessions (admin, auditor) or one's own, newest first."),
     .params = list_params, .answers = list_answers},
    {OP("GET", SESSIONS "/active", "listActiveSessions", API_READ, api_list_active_sessions,
        "Those of them that are active, without the idle ones."),
     .params = active_params, .answers = list_answers},
    {OP("GET", SESSIONS "/metrics", "getSessionMetrics", API_READ, api_session_metrics,
        "Sessions in numbers."),
     .params = since_params, .answers = totals_answers},
    {OP("GET", SESSIONS "/by-id/{uuid}", "getSessionById", API_READ, api_get_session_by_id,
        "A session by its row's id."),
     .params = session_by_id_params, .answers = get_answers},
    {OP("GET", SESSIONS "/{id}", "getSession", API_READ, api_get_session,
        "A session, whatever its status."),
     .params = session_get_params, .answers = get_answers},
    {OP("PATCH", SESSIONS "/{id}", "updateSession", API_WRITE, api_patch_session,
        "Changes what a client may change of its session."),
     .params = patch_params, .body = &body_session_patch, .answers = patch_answers},
    {OP("DELETE", SESSIONS "/{id}", "terminateSession", API_WRITE, api_end_session,
        "Ends a session for good."),
     .params = end_params, .answers = end_answers},
    {OP("POST", SESSIONS "/{id}/activity", "touchSession", API_WRITE, api_use_session,
        "Notes that the session is in use."),
     .is_once = true, .params = session_once_params, .answers = use_answers},
    {OP("POST", SESSIONS "/{id}/tools", "recordExecution", API_WRITE, api_record,
        "Records what a tool did, once or for up to 100 at once, all or none."),
     .is_once = true, .params = session_once_params, .body = &body_record,
     .answers = record_answers},
    {OP("GET", SESSIONS "/{id}/tools", "listExecutions", API_READ, api_list_executions,
        "What ran in the session, newest first."),
     .params = executions_params, .answers = executions_answers},
    {OP("POST", SESSIONS "/{id}/validate", "validateSession", API_READ, api_validate_session,
        "Whether the session may be used."),
     .params = session_params, .answers = validate_answers},
    {OP("POST", SESSIONS "/{id}/refresh", "refreshSession", API_WRITE, api_refresh_session,
        "Gives the session a new end, from now."),
     .is_once = true, .params = session_once_params, .body = &body_refresh,
     .answers = refresh_answers},
    {OP("GET", SESSIONS "/{id}/context", "getContext", API_READ, api_get_context,
        "The session's context document."),
     .params = session_get_params, .answers = context_get_answers},
    {OP("PUT", SESSIONS "/{id}/context", "putContext", API_WRITE, api_put_context,
        "Replaces the context document."),
     .params = context_write_params, .body = &body_context, .answers = context_put_answers},
    {OP("PATCH", SESSIONS "/{id}/context", "patchContext", API_WRITE, api_patch_context,
        "Changes the context document by a merge patch (RFC 7396)."),
     .params = context_write_params, .body = &body_context_patch, .answers = context_patch_answers},
    {.method = "GET",
     .pattern = "/api/v1/openapi.json",
     .id = "getOpenApi",
     .access = API_READ,
     .run = api_get_openapi,
     .summary = "This document.",
     .params = openapi_params,
     .answers = openapi_answers},
    {OP("POST", "/api/v1/auth/edge-mcp", "authenticateEdge", API_READ, api_edge_auth,
        "Whose credential this is, for edge clients."),
     .params = no_params, .body = &body_edge_auth, .answers = edge_answers},
    {AUTH_OP("POST", "/api/v1/auth/login", "login", API_OPEN, api_login,
             "Signs a user in on a device."),
     .params = no_params, .body = &body_login, .answers = login_answers},
    {AUTH_OP("POST", "/api/v1/auth/refresh", "refreshLogin", API_OPEN, api_refresh_login,
             "The next access token and refresh token."),
     .params = no_params, .body = &body_refresh_login, .answers = refresh_login_answers},
    {AUTH_OP("POST", "/api/v1/auth/logout", "logout", API_READ, api_logout,
             "Ends the sign-in whose access token is sent."),
     .params = no_params, .answers = end_login_answers},
    {AUTH_OP("GET", "/api/v1/auth/sessions", "listLogins", API_READ, api_list_logins,
             "The devices that the caller's user is signed in on."),
     .params = no_params, .answers = logins_answers},
    {AUTH_OP("DELETE", "/api/v1/auth/sessions", "endLogins", API_READ, api_end_logins,
             "Signs the caller's user out everywhere."),
     .params = no_params, .answers = end_login_answers},
    {AUTH_OP("DELETE", "/api/v1/auth/sessions/{id}", "endLogin", API_READ, api_end_login,
             "Signs a device out: one's own, or as admin any of the tenant."),
     .params = login_params, .answers = end_login_answers},
    {OP("POST", "/api/v1/executions", "recordSessionExecution", API_WRITE, api_record_alias,
        "Records what a tool did, for edge clients."),
     .is_once = true, .params = once_params, .body = &body_record_alias, .answers = record_answers},
    {OP("GET", "/api/v1/context/{id}", "getSessionContext", API_READ, api_get_context_alias,
        "The context document, for edge clients."),
     .params = session_params, .answers = alias_get_answers},
    {OP("PUT", "/api/v1/context/{id}", "putSessionContext", API_WRITE, api_put_context_alias,
        "Replaces the context document, for edge clients."),
     .params = session_params, .body = &body_context_put_alias, .answers = alias_put_answers},
    {OP("PATCH", "/api/v1/context/{id}", "appendSessionContext", API_WRITE, api_patch_context_alias,
        "Adds to the context document, for edge clients."),
     .params = session_params, .body = &body_context_patch_alias, .answers = alias_put_answers},
    {AUTH_OP("POST", "/api/v1/keys", "createKey", API_ADMIN, api_create_key,
             "Makes a key with at most the caller's own rights."),
     .params = no_params, .body = &body_key, .answers = key_create_answers},
    {AUTH_OP("GET", "/api/v1/keys", "listKeys", API_AUDIT, api_list_keys, "The tenant's keys."),
     .params = keys_params, .answers = keys_answers},
    {AUTH_OP("GET", "/api/v1/keys/{id}", "getKey", API_AUDIT, api_get_key, "A key of the tenant."),
     .params = key_params, .answers = key_answers},
    {AUTH_OP("DELETE", "/api/v1/keys/{id}", "revokeKey", API_ADMIN, api_revoke_key,
             "Revokes a key at once."),
     .params = key_params, .answers = key_revoke_answers},
    {AUTH_OP("POST", USERS, "createUser", API_ADMIN, api_create_user,
             "Makes a user who signs in with a password."),
     .params = no_params, .body = &body_user, .answers = user_create_answers},
    {AUTH_OP("GET", USERS "/{username}", "getUser", API_AUDIT, api_get_user,
             "A user of the tenant."),
     .params = account_params, .answers = account_answers},
    {AUTH_OP("PATCH", USERS "/{username}", "updateUser", API_ADMIN, api_patch_user,
             "Gives a user another password, or disables or enables it."),
     .params = account_params, .body = &body_user_patch, .answers = account_patch_answers},
    {AUTH_OP("GET", USERS "/{username}/sessions", "listUserSignIns", API_AUDIT,
             api_list_user_logins, "The devices that a user is signed in on."),
     .params = account_params, .answers = account_logins_answers},
    {AUTH_OP("DELETE", USERS "/{username}/sessions", "endUserSignIns", API_ADMIN,
             api_end_user_logins, "Signs a user out everywhere."),
     .params = account_params, .answers = sign_out_answers},
    {AUTH_OP("DELETE", USERS "/{username}/sessions/{id}", "endUserSignIn", API_ADMIN,
             api_end_user_login, "Signs a user out on one device."),
     .params = account_login_params, .answers = sign_out_answers},
    {AUTH_OP("GET", SERVERS, "listServers", API_AUDIT, api_list_servers,
             "The servers and how they are."),
     .params = page_params, .answers = servers_answers},
    {AUTH_OP("GET", SERVERS "/{name}", "getServer", API_AUDIT, api_get_server,
             "A server and how it is."),
     .params = server_params, .answers = server_answers},
    {AUTH_OP("GET", SERVERS "/{name}/tools", "listServerTools", API_AUDIT, api_list_server_tools,
             "The tools of a server, as last seen."),
     .params = server_page_params, .answers = tools_answers},
    {AUTH_OP("GET", SERVERS "/{name}/diff", "diffTool", API_AUDIT, api_diff_tool,
             "How a tool differs from what was approved."),
     .params = diff_params, .answers = diff_answers},
    {AUTH_OP("POST", SERVERS "/{name}/approve", "approveTools", API_ADMIN, api_approve_tools,
             "Approves tools as they were shown."),
     .params = server_params, .body = &body_approve, .answers = approve_answers},
    {AUTH_OP("GET", AUDIT "/events", "listEvents", API_AUDIT, api_list_events,
             "The events of the audit."),
     .params = events_params, .answers = events_answers},
    {AUTH_OP("GET", AUDIT "/executions", "listAuditExecutions", API_AUDIT,
             api_list_audit_executions, "Calls with their outcomes, newest first."),
     .params = audit_executions_params, .answers = audit_executions_answers},
    {AUTH_OP("GET", AUDIT "/executions/{id}", "getAuditExecution", API_AUDIT,
             api_get_audit_execution, "A call with its events and their bodies."),
     .params = audit_execution_params, .answers = audit_execution_answers},
    {AUTH_OP("GET", AUDIT "/verify", "verifyAudit", API_AUDIT, api_verify_audit,
             "Proves that no event was changed or removed; takes a while."),
     .params = no_params, .answers = verify_answers},
    {AUTH_OP("GET", "/api/v1/system", "getSystem", API_AUDIT, api_get_system,
             "The program itself, and the limits of the tenant."),
     .params = no_params, .answers = system_answers},
    {AUTH_OP("GET", "/api/v1/tools", "listTools", API_AUDIT, api_list_tools,
             "The tools of all servers on record, configured or not."),
     .params = page_params, .answers = tools_answers},
    {0},
};
