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
        .help = "A key that the client chooses. A request that repeats the key and the content "   \
                "of an earlier one within 24 hours is not carried out again: it gets the same "    \
                "answer, with Idempotency-Replayed: true."                                         \
    }
#define PARAM_SESSION                                                                              \
    {                                                                                              \
        .name = "id", .in = "path", .type = "string", .is_required = true, .min = 1, .max = 255,   \
        .help = "The session's session_id."                                                        \
    }
#define PARAM_LIMIT                                                                                \
    {                                                                                              \
        .name = "limit", .in = "query", .type = "integer", .min = 1, .max = STORE_PAGE_MAX,        \
        .default_text = "50", .help = "Largest number of rows in the page."                        \
    }
#define PARAM_CURSOR                                                                               \
    {                                                                                              \
        .name = "cursor", .in = "query", .type = "string", .min = 1, .max = 200,                   \
        .help = "next_cursor of the previous page."                                                \
    }
#define PARAM_CLIENT_TYPE                                                                          \
    {                                                                                              \
        .name = "client_type", .in = "query", .type = "string",                                    \
        .help = "Only sessions of this client_type: claude-code, ide, agent or cli."               \
    }
#define PARAM_IF_NONE_MATCH                                                                        \
    {                                                                                              \
        .name = "If-None-Match", .in = "header", .type = "string",                                 \
        .help = "An ETag from an earlier answer. The answer is 304 if the resource still has it."  \
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
     .help = "The id of the session's row."},
    PARAM_IF_NONE_MATCH,
    {0},
};
static const struct api_param list_params[] = {
    {.name = "status",
     .in = "query",
     .type = "string",
     .default_text = "active,idle",
     .help = "Statuses, separated by commas (active, idle, expired, terminated), or all."},
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
     .help = "The session's ETag. Only the version in it is compared, not the counters."},
    {0},
};
static const struct api_param end_params[] = {
    PARAM_SESSION,
    {.name = "reason",
     .in = "query",
     .type = "string",
     .max = 255,
     .default_text = "client request",
     .help = "Reason to record with the end of the session."},
    {.name = "tenant",
     .in = "query",
     .type = "string",
     .min = 1,
     .max = 64,
     .help = "The caller's tenant. On the unix socket: any tenant (default: `default`)."},
    {0},
};
static const struct api_param since_params[] = {
    {.name = "since",
     .in = "query",
     .type = "string",
     .default_text = "24h",
     .help = "Period to count, rounded to the minute: sessions that were created or used in it."},
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
     .help = "Whether to include arguments and results as the audit stores them."},
    {0},
};
static const struct api_param context_write_params[] = {
    PARAM_SESSION,
    {.name = "If-Match",
     .in = "header",
     .type = "string",
     .help = "The ETag of the context document; \"0\" if there is no document yet."},
    {0},
};

/* Answers. */

#define CONFLICT_ONCE                                                                              \
    {409, "Problem", "A request with this Idempotency-Key has not been answered yet."},            \
    {                                                                                              \
        422, "Problem", "The Idempotency-Key was used for a different request before."             \
    }
#define UNCHANGED                                                                                  \
    {                                                                                              \
        304, NULL, "The resource still has the ETag of If-None-Match."                             \
    }
#define NOT_ACTIVE                                                                                 \
    {                                                                                              \
        409, "Problem", "The session is not active."                                               \
    }
#define STALE                                                                                      \
    {                                                                                              \
        412, "Problem", "The resource has changed since it was read."                              \
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
    {401, "Problem",
     "The credential is missing or not valid, so the request belongs to no tenant."},
    {403, "Problem", "The role, the Host or the Origin does not permit the request."},
    {404, "Problem", "The resource does not exist, or the caller may not see it."},
    {429, "Problem", "A limit of the tenant or of the key is used up."},
    {500, "Problem", "Internal error."},
    {503, "Problem", "The store cannot be used at the moment."},
    {0},
};
static const struct api_answer create_answers[] = {
    {201, "Session", "The new session; Location is its path, ETag its version."},
    {409, "Problem",
     "The session_id is taken, or a request with this Idempotency-Key has not been answered yet."},
    {422, "Problem", "The Idempotency-Key was used for a different request before."},
    {429, "Problem",
     "The tenant has reached its session limit, or another limit of the tenant or of the key is "
     "used up."},
    TOO_LARGE,
    BAD_TYPE,
    {0},
};
static const struct api_answer list_answers[] = {{200, "SessionList", "A page of sessions."}, {0}};
static const struct api_answer get_answers[] = {{200, "Session", "The session."}, UNCHANGED, {0}};
static const struct api_answer patch_answers[] = {
    {200, "Session", "The session after the change."}, NOT_ACTIVE, STALE, TOO_LARGE, BAD_TYPE,
    {428, "Problem", "If-Match is missing."},          {0},
};
static const struct api_answer end_answers[] = {{200, "Message", "The session has ended."}, {0}};
static const struct api_answer use_answers[] = {
    {200, "Message", "The use is recorded; an idle session is active again."}, CONFLICT_ONCE, {0}};
static const struct api_answer record_answers[] = {
    {200, "Message", "All executions are stored durably."},
    {409, "Problem",
     "The session is not active, or a request with this Idempotency-Key has not been answered "
     "yet."},
    {422, "Problem", "The Idempotency-Key was used for a different request before."},
    TOO_LARGE,
    BAD_TYPE,
    {0},
};
static const struct api_answer executions_answers[] = {
    {200, "ExecutionList", "A page, newest first."}, {0}};
static const struct api_answer validate_answers[] = {
    {200, "SessionValidity",
     "The result of the check. A session that may not be used is not an error."},
    {0}};
static const struct api_answer refresh_answers[] = {
    {200, "SessionRefreshed", "The new end of the session."},
    {409, "Problem",
     "The session is not active, or a request with this Idempotency-Key has not been answered "
     "yet."},
    {422, "Problem", "The Idempotency-Key was used for a different request before."},
    TOO_LARGE,
    BAD_TYPE,
    {0},
};
static const struct api_answer totals_answers[] = {{200, "SessionTotals", "The totals."}, {0}};
static const struct api_answer context_get_answers[] = {
    {200, "Context", "The document; {} if there is none yet."}, UNCHANGED, {0}};
static const struct api_answer context_put_answers[] = {
    {200, "Context", "The document after the change."},
    NOT_ACTIVE,
    STALE,
    TOO_LARGE,
    BAD_TYPE,
    {428, "Problem", "A document exists already, and If-Match is missing."},
    {0},
};
static const struct api_answer context_patch_answers[] = {
    {200, "Context", "The document after the change."},
    NOT_ACTIVE,
    STALE,
    TOO_LARGE,
    BAD_TYPE,
    {0}};
static const struct api_answer edge_answers[] = {
    {200, "EdgeTenant", "The credential is valid."}, TOO_LARGE, BAD_TYPE, {0}};
static const struct api_answer login_answers[] = {
    {200, "Tokens", "Signed in."}, TOO_LARGE, BAD_TYPE, {0}};
static const struct api_answer refresh_login_answers[] = {
    {200, "Tokens", "The new tokens. The refresh token of the request cannot be used again."},
    {409, "Problem", "Another request has used this refresh token at the same time."},
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
    {200, "ContextEnvelope", "The document after the change."},
    NOT_ACTIVE,
    STALE,
    TOO_LARGE,
    BAD_TYPE,
    {0}};

/* Schemas of answers. */

static const struct api_member session_members[] = {
    {"id", "string", NULL, true, "uuid", NULL, "Id of the row."},
    {"session_id", "string", NULL, true, NULL, NULL,
     "Name of the session; for MCP clients it is also the handle."},
    {"tenant_id", "string", NULL, true, NULL, NULL, "Tenant of the session."},
    {"user_id", "string", NULL, false, "uuid", NULL, "User who created the session."},
    {"edge_mcp_id", "string", NULL, true, NULL, NULL, "Node that the client is connected to."},
    {"client_name", "string", NULL, false, NULL, NULL, "Name that the client gives itself."},
    {"client_type", "string", NULL, false, NULL, client_types, "Kind of the client."},
    {"client_version", "string", NULL, false, NULL, NULL, "Version of the client."},
    {"status", "string", NULL, true, NULL, statuses, "Current status."},
    {"initialized", "boolean", NULL, true, NULL, NULL,
     "Whether the client has completed its handshake."},
    {"core_session_id", "string", NULL, false, NULL, NULL,
     "Session of another system, as named by the client, or the Mcp-Session-Id of the first HTTP "
     "server that the session used."},
    {"passthrough_auth", "object", "PassthroughAuth", false, NULL, NULL,
     "Whether credentials are stored."},
    {"profile_context_keys", "array", NULL, false, NULL, NULL,
     "Keys of the context values that the client sent when the session began. The values are never "
     "shown."},
    {"connection_metadata", "object", NULL, false, NULL, NULL,
     "Metadata of the client, with ip_address, user_agent, protocol and tls_version."},
    {"setup", "object", NULL, false, NULL, NULL,
     "What a template or an administrator laid down for the session."},
    {"lineage", "object", NULL, false, NULL, NULL,
     "The session that this one was forked, imported or replayed from."},
    {"context_id", "string", NULL, false, "uuid", NULL, "Id of the context document."},
    {"last_activity_at", "string", NULL, true, "date-time", NULL, "Time of the last use."},
    {"tool_execution_count", "integer", NULL, true, NULL, NULL, "Number of tool executions."},
    {"total_tokens_used", "integer", NULL, true, NULL, NULL, "Number of tokens used."},
    {"created_at", "string", NULL, true, "date-time", NULL, "Time of creation."},
    {"expires_at", "string", NULL, false, "date-time", NULL, "Time of expiry."},
    {"terminated_at", "string", NULL, false, "date-time", NULL, "Time of the end."},
    {"termination_reason", "string", NULL, false, NULL, NULL, "Reason of the end."},
    {"origin", "string", NULL, true, NULL, origins, "How the session was created."},
    {"is_expired", "boolean", NULL, true, NULL, NULL, "Whether the session has expired."},
    {"should_refresh", "boolean", NULL, true, NULL, NULL,
     "Whether the session is live and has a fifth of its lifetime left, or less."},
    {"session_age", "integer", NULL, true, NULL, NULL,
     "Seconds since creation. It does not change the ETag."},
    {0},
};
static const struct api_member auth_members[] = {
    {"has_auth", "boolean", NULL, true, NULL, NULL, "Whether credentials are stored."},
    {"services", "array", NULL, true, NULL, NULL, "Services that the credentials are for."},
    {0},
};
static const struct api_member session_list_members[] = {
    {"sessions", "array", "Session", true, NULL, NULL, "The rows, newest first."},
    {"count", "integer", NULL, true, NULL, NULL, "Number of rows in this answer."},
    {"next_cursor", "string|null", NULL, true, NULL, NULL,
     "Cursor of the next page; null if this is the last page."},
    {0},
};
static const struct api_member execution_members[] = {
    {"id", "string", NULL, true, "uuid", NULL, "Id of the execution."},
    {"session_id", "string", NULL, true, "uuid", NULL, "The id of the session's row."},
    {"server", "string", NULL, false, NULL, NULL,
     "Server that ran the tool; absent if a client reported the execution."},
    {"tool_name", "string", NULL, true, NULL, NULL, "Name of the tool."},
    {"tool_id", "string", NULL, false, "uuid", NULL, "Id of the tool."},
    {"arguments", NULL, NULL, false, NULL, NULL,
     "As stored by the audit: secrets are replaced and long values are cut."},
    {"result", NULL, NULL, false, NULL, NULL,
     "As stored by the audit: secrets are replaced and long values are cut."},
    {"outcome", "string", NULL, true, NULL, outcomes, "Outcome of the execution."},
    {"error", "string", NULL, false, NULL, NULL, "Reason of the failure."},
    {"duration_ms", "integer", NULL, false, NULL, NULL, "Duration of the execution."},
    {"tokens_used", "integer", NULL, false, NULL, NULL, "Number of tokens, as reported."},
    {"executed_at", "string", NULL, true, "date-time", NULL, "Time of the execution."},
    {0},
};
static const struct api_member execution_list_members[] = {
    {"executions", "array", "Execution", true, NULL, NULL, "The rows, newest first."},
    {"count", "integer", NULL, true, NULL, NULL, "Number of rows in this answer."},
    {"next_cursor", "string|null", NULL, true, NULL, NULL,
     "Cursor of the next page; null if this is the last page."},
    {0},
};
static const struct api_member message_members[] = {
    {"message", "string", NULL, true, NULL, NULL, "Confirmation of the change."},
    {"count", "integer", NULL, false, NULL, NULL,
     "Number of executions, if the request was an array."},
    {0},
};
static const struct api_member validity_members[] = {
    {"valid", "boolean", NULL, true, NULL, NULL, "Whether the session may be used."},
    {"session_id", "string", NULL, true, NULL, NULL, "Name of the session."},
    {"status", "string", NULL, true, NULL, statuses, "Current status."},
    {"expires_at", "string", NULL, false, "date-time", NULL, "Time of expiry."},
    {"termination_reason", "string", NULL, false, NULL, NULL, "Reason of the end."},
    {0},
};
static const struct api_member refreshed_members[] = {
    {"message", "string", NULL, true, NULL, NULL, "session refreshed"},
    {"session_id", "string", NULL, true, NULL, NULL, "Name of the session."},
    {"expires_at", "string", NULL, true, "date-time", NULL, "New time of expiry."},
    {0},
};
static const struct api_member totals_members[] = {
    {"active_sessions", "integer", NULL, true, NULL, NULL, "Sessions that are live now."},
    {"total_sessions", "integer", NULL, true, NULL, NULL,
     "Sessions that were created or used in the period."},
    {"total_tool_executions", "integer", NULL, true, NULL, NULL, "Sum over these sessions."},
    {"total_tokens_used", "integer", NULL, true, NULL, NULL, "Sum over these sessions."},
    {"average_session_time_minutes", "number", NULL, true, NULL, NULL,
     "Mean time from creation to end or last use."},
    {0},
};
static const struct api_member edge_members[] = {
    {"success", "boolean", NULL, true, NULL, NULL, "Always true."},
    {"tenant_id", "string", NULL, true, NULL, NULL, "Tenant of the credential."},
    {0},
};
static const struct api_member envelope_members[] = {
    {"success", "boolean", NULL, true, NULL, NULL, "Always true."},
    {"context", "object", NULL, true, NULL, NULL, "The document."},
    {0},
};
static const struct api_member problem_members[] = {
    {"type", "string", NULL, true, "uri", NULL, "urn:holdfast:problem:CODE"},
    {"title", "string", NULL, true, NULL, NULL, "Meaning of the code."},
    {"status", "integer", NULL, true, NULL, NULL, "The HTTP status."},
    {"detail", "string", NULL, true, NULL, NULL, "What failed, and what to do."},
    {"code", "string", NULL, true, NULL, NULL,
     "Code of the error; holdfast help CODE explains it."},
    {"request_id", "string", NULL, true, NULL, NULL, "The X-Request-Id of the answer."},
    {"error", "string", NULL, true, NULL, NULL, "The error in one short sentence."},
    {0},
};
static const struct api_member health_members[] = {
    {"status", "string", NULL, true, NULL, NULL, "ok"},
    {"reason", "string", NULL, false, NULL, NULL,
     "On /readyz, if the server is not ready: the reason. It is left out with `auth: required`."},
    {"warning", "string", NULL, false, NULL, NULL,
     "On /readyz: a problem that will make the server fail if it lasts."},
    {"servers", "object", NULL, false, NULL, NULL,
     "On /readyz: the state of each server by name. With `auth: required`: how many servers are in "
     "each state."},
    {0},
};
static const struct api_member refusal_members[] = {
    {"error", "string", NULL, true, NULL, NULL, "The error in one sentence."},
    {0},
};
static const char *const roles[] = {"admin", "member", "auditor", "service", NULL};
static const char *const token_types[] = {"Bearer", NULL};
static const struct api_member user_members[] = {
    {"id", "string", NULL, true, "uuid", NULL, "The user's id."},
    {"username", "string", NULL, true, NULL, NULL, "Name of the user."},
    {"tenant_id", "string", NULL, true, NULL, NULL, "Tenant of the user."},
    {"role", "string", NULL, true, NULL, roles, "Role."},
    {0},
};
static const struct api_member tokens_members[] = {
    {"access_token", "string", NULL, true, NULL, NULL, "Send it as Authorization: Bearer."},
    {"token_type", "string", NULL, true, NULL, token_types, "Always Bearer."},
    {"expires_in", "integer", NULL, true, NULL, NULL, "Seconds until the access token expires."},
    {"refresh_token", "string", NULL, true, NULL, NULL,
     "Token for POST /api/v1/auth/refresh. It can be used once, within 30 days."},
    {"session_id", "string", NULL, true, "uuid", NULL,
     "Id of the sign-in, as in the list of sign-ins."},
    {"user", "object", "User", true, NULL, NULL, "The user who signed in."},
    {0},
};
static const struct api_member login_members[] = {
    SIGN_IN_MEMBERS,
    {"current", "boolean", NULL, true, NULL, NULL, "Whether this request belongs to the sign-in."},
    {0},
};
static const struct api_member login_list_members[] = {
    {"sessions", "array", "SignIn", true, NULL, NULL, "The rows, newest first."},
    {"count", "integer", NULL, true, NULL, NULL, "Number of sign-ins."},
    {0},
};
const struct api_schema api_own_schemas[] = {
    {"Session", session_members, "A durable session.", API_ETAG},
    {"PassthroughAuth", auth_members,
     "States that credentials are stored. The credentials are never shown."},
    {"SessionList", session_list_members, "A page of sessions.", API_LINK},
    {"Execution", execution_members, "One execution of a tool."},
    {"ExecutionList", execution_list_members, "A page of executions.", API_LINK},
    {"Message", message_members, "Confirmation of the change."},
    {"SessionValidity", validity_members, "Whether a session may be used."},
    {"SessionRefreshed", refreshed_members, "The new expiry of a session."},
    {"SessionTotals", totals_members, "Totals of the sessions."},
    {"EdgeTenant", edge_members, "The tenant of a credential."},
    {"User", user_members, "A user."},
    {"Tokens", tokens_members, "The tokens of a sign-in."},
    {"SignIn", login_members, "A device that a user is signed in on."},
    {"SignInList", login_list_members, "Devices that a user is signed in on."},
    {"Key", key_members, "A key, without its secret."},
    {"NewKey", new_key_members, "A key with its secret, which is never shown again."},
    {"KeyList", key_list_members, "A page of keys.", API_LINK},
    {"Secret", secret_members, "A secret of the configuration, without its value."},
    {"SecretList", secret_list_members, "The secrets of the configuration."},
    {"SessionDetail", session_detail_members, "A session with names, servers and links."},
    {"SessionDetailList", session_detail_list_members, "A page of sessions.", API_LINK},
    {"SessionLink", session_link_members, "The state of a server for one session."},
    {"Server", server_members, "A server and its state."},
    {"ServerList", server_list_members, "A page of servers.", API_LINK},
    {"ServerLogLine", server_log_line_members, "A line that a server wrote to its stderr."},
    {"ServerLog", server_log_members, "The newest stderr lines of a server."},
    {"Tool", tool_members, "A tool as last seen."},
    {"ToolList", tool_list_members, "A page of tools.", API_LINK},
    {"ToolDiff", tool_diff_members, "A tool compared with its approved definition."},
    {"ToolsApproved", approved_members, "Result of an approval."},
    {"Account", account_members, "A user, for administrators."},
    {"AccountList", account_list_members, "A page of users.", API_LINK},
    {"UserSignIn", account_login_members, "A device that a user is signed in on."},
    {"UserSignInList", account_login_list_members, "Devices that a user is signed in on."},
    {"Event", event_members, "An event of the audit. Its kind decides which members it has."},
    {"EventList", event_list_members, "A page of events.", API_LINK},
    {"AuditExecution", audit_execution_members, "One call of a server, or a request that reads."},
    {"AuditExecutionList", audit_execution_list_members, "A page of executions.", API_LINK},
    {"AuditExecutionDetail", audit_execution_detail_members, "An execution with its events."},
    {"RemovedEvents", removed_members, "Consecutive events of one chain that retention removed."},
    {"AuditProof", verify_members, "Result of a verification of the chains."},
    {"AuditStats", audit_stats_members, "Sizes of the audit."},
    {"AuditSize", audit_size_members, "What the audit holds of one tenant."},
    {"AuditRules", audit_rules_members, "What is removed of the audit of a tenant."},
    {"AuditDatabase", audit_database_members, "Size of the database."},
    {"AuditDisk", audit_disk_members, "Room on the disk of the database."},
    {"System", system_members, "State of the program."},
    {"Context", NULL, "A context document: any JSON object of at most 1 MiB.", API_ETAG},
    {"ContextEnvelope", envelope_members, "A context document, wrapped.", API_ETAG},
    {"OpenApi", NULL, "An OpenAPI 3.1 document.", API_ETAG},
    {"Refusal", refusal_members, "An error outside of /api/v1."},
    {"Health", health_members, "State of the server."},
    {"Problem", problem_members, "An error (RFC 9457)."},
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
    {OP("POST", SESSIONS, "createSession", API_WRITE, api_create_session, "Creates a session."),
     .is_once = true, .params = once_params, .body = &body_session, .answers = create_answers},
    {OP("GET", SESSIONS, "listSessions", API_READ, api_list_sessions,
        "Lists sessions, newest first: those of the tenant for the roles admin and auditor, the "
        "caller's own for others."),
     .params = list_params, .answers = list_answers},
    {OP("GET", SESSIONS "/active", "listActiveSessions", API_READ, api_list_active_sessions,
        "Lists sessions with the status active."),
     .params = active_params, .answers = list_answers},
    {OP("GET", SESSIONS "/metrics", "getSessionMetrics", API_READ, api_session_metrics,
        "Returns totals of the sessions."),
     .params = since_params, .answers = totals_answers},
    {AUTH_OP("GET", SESSIONS "/details", "listSessionDetails", API_AUDIT, api_list_session_details,
             "Lists sessions with the names of users, keys and servers, newest first."),
     .params = session_details_params, .answers = session_details_answers},
    {AUTH_OP("GET", SESSIONS "/{id}/details", "getSessionDetails", API_AUDIT, api_session_details,
             "Returns a session with the names of user, key and servers, found also by the "
             "beginning of its name."),
     .params = session_detail_params, .answers = session_detail_answers},
    {OP("GET", SESSIONS "/by-id/{uuid}", "getSessionById", API_READ, api_get_session_by_id,
        "Returns the session with this row id."),
     .params = session_by_id_params, .answers = get_answers},
    {OP("GET", SESSIONS "/{id}", "getSession", API_READ, api_get_session,
        "Returns a session of any status."),
     .params = session_get_params, .answers = get_answers},
    {OP("PATCH", SESSIONS "/{id}", "updateSession", API_WRITE, api_patch_session,
        "Changes a session."),
     .params = patch_params, .body = &body_session_patch, .answers = patch_answers},
    {OP("DELETE", SESSIONS "/{id}", "terminateSession", API_WRITE, api_end_session,
        "Ends a session. It cannot be resumed."),
     .params = end_params, .answers = end_answers},
    {OP("POST", SESSIONS "/{id}/activity", "touchSession", API_WRITE, api_use_session,
        "Records a use of the session."),
     .is_once = true, .params = session_once_params, .answers = use_answers},
    {OP("POST", SESSIONS "/{id}/tools", "recordExecution", API_WRITE, api_record,
        "Records one execution of a tool, or up to 100. Either all of them are recorded or none."),
     .is_once = true, .params = session_once_params, .body = &body_record,
     .answers = record_answers},
    {OP("GET", SESSIONS "/{id}/tools", "listExecutions", API_READ, api_list_executions,
        "Lists the executions of the session, newest first."),
     .params = executions_params, .answers = executions_answers},
    {OP("POST", SESSIONS "/{id}/validate", "validateSession", API_READ, api_validate_session,
        "Checks whether the session may be used."),
     .params = session_params, .answers = validate_answers},
    {OP("POST", SESSIONS "/{id}/refresh", "refreshSession", API_WRITE, api_refresh_session,
        "Extends the session from now on."),
     .is_once = true, .params = session_once_params, .body = &body_refresh,
     .answers = refresh_answers},
    {OP("GET", SESSIONS "/{id}/context", "getContext", API_READ, api_get_context,
        "Returns the context document of the session."),
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
     .summary = "Returns this OpenAPI document.",
     .params = openapi_params,
     .answers = openapi_answers},
    {OP("POST", "/api/v1/auth/edge-mcp", "authenticateEdge", API_READ, api_edge_auth,
        "Returns the tenant of the credential, for edge clients."),
     .params = no_params, .body = &body_edge_auth, .answers = edge_answers},
    {AUTH_OP("POST", "/api/v1/auth/login", "login", API_OPEN, api_login,
             "Signs a user in on a device."),
     .params = no_params, .body = &body_login, .answers = login_answers},
    {AUTH_OP("POST", "/api/v1/auth/refresh", "refreshLogin", API_OPEN, api_refresh_login,
             "Exchanges a refresh token for a new access token and a new refresh token."),
     .params = no_params, .body = &body_refresh_login, .answers = refresh_login_answers},
    {AUTH_OP("POST", "/api/v1/auth/logout", "logout", API_READ, api_logout,
             "Ends the sign-in whose access token is sent."),
     .params = no_params, .answers = end_login_answers},
    {AUTH_OP("GET", "/api/v1/auth/sessions", "listLogins", API_READ, api_list_logins,
             "Lists the devices on which the caller's user is signed in."),
     .params = no_params, .answers = logins_answers},
    {AUTH_OP("DELETE", "/api/v1/auth/sessions", "endLogins", API_READ, api_end_logins,
             "Signs the caller's user out everywhere."),
     .params = no_params, .answers = end_login_answers},
    {AUTH_OP("DELETE", "/api/v1/auth/sessions/{id}", "endLogin", API_READ, api_end_login,
             "Ends a sign-in of the caller's user. Admins may end any sign-in of the tenant."),
     .params = login_params, .answers = end_login_answers},
    {OP("POST", "/api/v1/executions", "recordSessionExecution", API_WRITE, api_record_alias,
        "Records an execution of a tool, for edge clients."),
     .is_once = true, .params = once_params, .body = &body_record_alias, .answers = record_answers},
    {OP("GET", "/api/v1/context/{id}", "getSessionContext", API_READ, api_get_context_alias,
        "Returns the context document, for edge clients."),
     .params = session_params, .answers = alias_get_answers},
    {OP("PUT", "/api/v1/context/{id}", "putSessionContext", API_WRITE, api_put_context_alias,
        "Replaces the context document, for edge clients."),
     .params = session_params, .body = &body_context_put_alias, .answers = alias_put_answers},
    {OP("PATCH", "/api/v1/context/{id}", "appendSessionContext", API_WRITE, api_patch_context_alias,
        "Adds to the context document, for edge clients."),
     .params = session_params, .body = &body_context_patch_alias, .answers = alias_put_answers},
    {AUTH_OP("POST", "/api/v1/keys", "createKey", API_ADMIN, api_create_key,
             "Creates a key. It cannot have more rights than the caller."),
     .params = no_params, .body = &body_key, .answers = key_create_answers},
    {AUTH_OP("GET", "/api/v1/keys", "listKeys", API_AUDIT, api_list_keys,
             "Lists the keys of the tenant."),
     .params = keys_params, .answers = keys_answers},
    {AUTH_OP("GET", "/api/v1/keys/{id}", "getKey", API_AUDIT, api_get_key,
             "Returns a key of the tenant."),
     .params = key_params, .answers = key_answers},
    {AUTH_OP("DELETE", "/api/v1/keys/{id}", "revokeKey", API_ADMIN, api_revoke_key,
             "Revokes a key at once."),
     .params = key_params, .answers = key_revoke_answers},
    {AUTH_OP("GET", "/api/v1/secrets", "listSecrets", API_LOCAL, api_list_secrets,
             "Lists the secrets of the configuration without their values. Only on the unix "
             "socket."),
     .params = no_params, .answers = secrets_answers},
    {AUTH_OP("PUT", "/api/v1/secrets/{name}", "putSecret", API_LOCAL, api_put_secret,
             "Sets a secret of the configuration. Only on the unix socket."),
     .params = secret_params, .body = &body_secret, .answers = secret_put_answers},
    {AUTH_OP("DELETE", "/api/v1/secrets/{name}", "removeSecret", API_LOCAL, api_remove_secret,
             "Removes a secret of the configuration. Only on the unix socket."),
     .params = secret_params, .answers = secret_remove_answers},
    {AUTH_OP("POST", USERS, "createUser", API_ADMIN, api_create_user,
             "Creates a user who signs in with a password."),
     .params = no_params, .body = &body_user, .answers = user_create_answers},
    {AUTH_OP("GET", USERS, "listUsers", API_AUDIT, api_list_users,
             "The tenant's users, except those of an issuer of tokens."),
     .params = keys_params, .answers = accounts_answers},
    {AUTH_OP("GET", USERS "/{username}", "getUser", API_AUDIT, api_get_user,
             "Returns a user of the tenant."),
     .params = account_params, .answers = account_answers},
    {AUTH_OP("PATCH", USERS "/{username}", "updateUser", API_ADMIN, api_patch_user,
             "Changes the password of a user, or disables or enables the user."),
     .params = account_params, .body = &body_user_patch, .answers = account_patch_answers},
    {AUTH_OP("GET", USERS "/{username}/sessions", "listUserSignIns", API_AUDIT,
             api_list_user_logins, "Lists the devices on which a user is signed in."),
     .params = account_params, .answers = account_logins_answers},
    {AUTH_OP("DELETE", USERS "/{username}/sessions", "endUserSignIns", API_ADMIN,
             api_end_user_logins, "Signs a user out everywhere."),
     .params = account_params, .answers = sign_out_answers},
    {AUTH_OP("DELETE", USERS "/{username}/sessions/{id}", "endUserSignIn", API_ADMIN,
             api_end_user_login, "Signs a user out on one device."),
     .params = account_login_params, .answers = sign_out_answers},
    {AUTH_OP("GET", SERVERS, "listServers", API_AUDIT, api_list_servers,
             "Lists the servers and their states."),
     .params = page_params, .answers = servers_answers},
    {AUTH_OP("GET", SERVERS "/{name}", "getServer", API_AUDIT, api_get_server,
             "Returns a server and its state."),
     .params = server_params, .answers = server_answers},
    {AUTH_OP("GET", SERVERS "/{name}/tools", "listServerTools", API_AUDIT, api_list_server_tools,
             "Lists the tools of a server, as last seen."),
     .params = server_tools_params, .answers = tools_answers},
    {AUTH_OP("GET", SERVERS "/{name}/diff", "diffTool", API_AUDIT, api_diff_tool,
             "Shows how a tool differs from its approved definition."),
     .params = diff_params, .answers = diff_answers},
    {AUTH_OP("POST", SERVERS "/{name}/approve", "approveTools", API_ADMIN, api_approve_tools,
             "Approves the definitions of tools that the caller was shown."),
     .params = server_params, .body = &body_approve, .answers = approve_answers},
    {AUTH_OP("POST", SERVERS "/{name}/restart", "restartServer", API_ADMIN, api_restart_server,
             "Ends the processes of a server, and probes it again."),
     .params = server_params, .answers = restart_answers},
    {AUTH_OP("GET", SERVERS "/{name}/logs", "listServerLogs", API_AUDIT, api_list_server_logs,
             "Lists the newest stderr lines of a server."),
     .params = server_logs_params, .answers = server_logs_answers},
    {AUTH_OP("GET", AUDIT "/events", "listEvents", API_AUDIT, api_list_events,
             "Lists the events of the audit."),
     .params = events_params, .answers = events_answers},
    {AUTH_OP("GET", AUDIT "/executions", "listAuditExecutions", API_AUDIT,
             api_list_audit_executions, "Lists executions with their outcomes, newest first."),
     .params = audit_executions_params, .answers = audit_executions_answers},
    {AUTH_OP("GET", AUDIT "/executions/{id}", "getAuditExecution", API_AUDIT,
             api_get_audit_execution, "Returns an execution with its events and their bodies."),
     .params = audit_execution_params, .answers = audit_execution_answers},
    {AUTH_OP("GET", AUDIT "/verify", "verifyAudit", API_AUDIT, api_verify_audit,
             "Verifies that no event was changed or removed. This may take a while."),
     .params = no_params, .answers = verify_answers},
    {AUTH_OP("GET", AUDIT "/stats", "getAuditStats", API_AUDIT, api_get_audit_stats,
             "Returns how much the audit holds, how fast it grows, and how long the disk lasts."),
     .params = audit_stats_params, .answers = audit_stats_answers},
    {AUTH_OP("GET", "/api/v1/system", "getSystem", API_AUDIT, api_get_system,
             "Returns the state of the program and the limits of the tenant."),
     .params = no_params, .answers = system_answers},
    {AUTH_OP(
         "GET", "/api/v1/tools", "listTools", API_AUDIT, api_list_tools,
         "Lists the known tools of all servers, also of servers that are no longer configured."),
     .params = page_params, .answers = tools_answers},
    {0},
};
