/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters, answers and members of the operations for administrators. */
#include "api/admin_table.h"

#include "upstream/stderr_log.h"

static const char *const roles[] = {"admin", "member", "auditor", "service", NULL};

/* Parameters. */

#define PARAM_TENANT                                                                               \
    {                                                                                              \
        .name = "tenant", .in = "query", .type = "string", .min = 1, .max = 64,                    \
        .help = "The caller's tenant. On the unix socket: any tenant (default: all)."              \
    }
#define PARAM_LIMIT                                                                                \
    {                                                                                              \
        .name = "limit", .in = "query", .type = "integer", .min = 1, .max = STORE_PAGE_MAX,        \
        .default_text = "50", .help = "Largest number of rows in the page."                        \
    }
#define PARAM_CURSOR                                                                               \
    {                                                                                              \
        .name = "cursor", .in = "query", .type = "string", .min = 1, .max = 2000,                  \
        .help = "next_cursor of the previous page."                                                \
    }

const struct api_param keys_params[] = {PARAM_TENANT, PARAM_LIMIT, PARAM_CURSOR, {0}};
const struct api_param key_params[] = {
    {.name = "id",
     .in = "path",
     .type = "string",
     .is_required = true,
     .min = 1,
     .max = 255,
     .help = "The key's id, not the key itself."},
    {0},
};

const struct api_param secret_params[] = {
    {.name = "name",
     .in = "path",
     .type = "string",
     .is_required = true,
     .min = 1,
     .max = CONFIG_SECRET_NAME_MAX,
     .help = "The secret's name: letters, digits and . _ -."},
    {0},
};

#define PARAM_SERVER                                                                               \
    {                                                                                              \
        .name = "name", .in = "path", .type = "string", .is_required = true, .min = 1, .max = 255, \
        .help = "The server's name."                                                               \
    }
const struct api_param audit_stats_params[] = {PARAM_TENANT, {0}};
const struct api_param page_params[] = {PARAM_LIMIT, PARAM_CURSOR, {0}};
const struct api_param server_params[] = {PARAM_SERVER, {0}};
static const char *const flags[] = {"0", "1", NULL};
const struct api_param server_tools_params[] = {
    PARAM_SERVER,
    {.name = "definitions",
     .in = "query",
     .type = "string",
     .names = flags,
     .default_text = "0",
     .help = "1: include the definitions as last seen, up to 64 KiB each."},
    PARAM_LIMIT,
    PARAM_CURSOR,
    {0}};
const struct api_param server_logs_params[] = {
    PARAM_SERVER,
    {.name = "limit",
     .in = "query",
     .type = "integer",
     .min = 1,
     .max = STDERR_LOG_LINES,
     .default_text = "50",
     .help = "Largest number of lines, the newest ones."},
    {.name = "after",
     .in = "query",
     .type = "integer",
     .min = 0,
     .default_text = "0",
     .help = "Only lines with a greater number."},
    {0},
};
const struct api_param diff_params[] = {
    PARAM_SERVER,
    {.name = "tool",
     .in = "query",
     .type = "string",
     .is_required = true,
     .min = 1,
     .help = "The tool's own name."},
    {0},
};

#define PARAM_USER                                                                                 \
    {                                                                                              \
        .name = "username", .in = "path", .type = "string", .is_required = true, .min = 1,         \
        .max = 200, .help = "The user's name."                                                     \
    }
#define PARAM_USER_TENANT                                                                          \
    {                                                                                              \
        .name = "tenant", .in = "query", .type = "string", .min = 1, .max = 64,                    \
        .help = "The caller's tenant. On the unix socket: any tenant (default: `default`)."        \
    }
const struct api_param account_params[] = {PARAM_USER, PARAM_USER_TENANT, {0}};
const struct api_param account_login_params[] = {
    PARAM_USER,
    {.name = "id",
     .in = "path",
     .type = "string",
     .is_required = true,
     .min = 1,
     .max = 255,
     .help = "The sign-in's id."},
    PARAM_USER_TENANT,
    {0},
};

#define QUERY_TEXT(NAME, HELP)                                                                     \
    {                                                                                              \
        .name = (NAME), .in = "query", .type = "string", .max = 1000, .help = (HELP)               \
    }
static const char *const event_kinds[] = {"intent",  "outcome", "note",   "anchor",   "writer",
                                          "session", "system",  "record", "imported", NULL};
static const char *const orders[] = {"oldest", "newest", NULL};
const struct api_param events_params[] = {
    QUERY_TEXT("after", "Only events after this id, such as 3.17."),
    QUERY_TEXT("before", "Only events before this id."),
    QUERY_TEXT("exec", "Only the events of this execution."),
    QUERY_TEXT("since", "Only events since this time, in milliseconds since 1970."),
    PARAM_TENANT,
    QUERY_TEXT("session", "Only events of this session, by the id of its row."),
    QUERY_TEXT("session_prefix", "Only sessions whose row id begins with this text."),
    QUERY_TEXT("server", "Only rows of this server."),
    QUERY_TEXT("tool", "Only rows of this tool."),
    QUERY_TEXT("outcome", "Only rows with this outcome."),
    {.name = "open",
     .in = "query",
     .type = "string",
     .names = flags,
     .help = "1: only intents without an outcome."},
    {.name = "kind",
     .in = "query",
     .type = "string",
     .names = event_kinds,
     .help = "Only events of this kind."},
    {.name = "order",
     .in = "query",
     .type = "string",
     .names = orders,
     .default_text = "oldest",
     .help = "Which events come first."},
    {.name = "bodies",
     .in = "query",
     .type = "string",
     .names = flags,
     .default_text = "0",
     .help = "1: include arguments and results as the audit stores them."},
    {.name = "limit",
     .in = "query",
     .type = "integer",
     .min = 1,
     .max = STORE_PAGE_MAX,
     .default_text = "100",
     .help = "Largest number of rows in the page."},
    PARAM_CURSOR,
    {0},
};
const struct api_param audit_executions_params[] = {
    PARAM_TENANT,
    QUERY_TEXT("server", "Only rows of this server."),
    QUERY_TEXT("tool", "Only rows of this tool."),
    QUERY_TEXT("session", "Only sessions whose row id begins with this text."),
    QUERY_TEXT("outcome", "Only rows with this outcome; open: without an outcome."),
    QUERY_TEXT("since", "Only executions younger than this duration, such as 30m, 24h or 7d, or "
                        "begun since this time, such as 2026-11-17T00:00:00.000Z."),
    QUERY_TEXT("until", "Only executions begun before this time, written as for since."),
    QUERY_TEXT("user", "Only executions of this user, or of this key, by its name or id."),
    {.name = "errors",
     .in = "query",
     .type = "string",
     .names = flags,
     .default_text = "0",
     .help = "1: only executions that failed, or whose outcome is not known."},
    {.name = "arguments",
     .in = "query",
     .type = "string",
     .names = flags,
     .default_text = "0",
     .help = "1: include the arguments, and the reply to a failed call, in one line each."},
    PARAM_LIMIT,
    PARAM_CURSOR,
    {0},
};
const struct api_param audit_execution_params[] = {
    {.name = "id",
     .in = "path",
     .type = "string",
     .is_required = true,
     .min = 1,
     .max = 255,
     .help = "Id of the intent, the outcome or the note of the execution, such as 3.17."},
    {0},
};

const struct api_param session_details_params[] = {
    PARAM_USER_TENANT,
    {.name = "status",
     .in = "query",
     .type = "string",
     .default_text = "active,idle",
     .help = "Statuses, separated by commas (active, idle, expired, terminated), or all."},
    QUERY_TEXT("client", "Only sessions whose client has this client_name or client_type."),
    QUERY_TEXT("server", "Only sessions that have used this server."),
    QUERY_TEXT("user", "Only sessions of this user, or of this key, by its name or id."),
    PARAM_LIMIT,
    PARAM_CURSOR,
    {0},
};
const struct api_param session_detail_params[] = {
    {.name = "id",
     .in = "path",
     .type = "string",
     .is_required = true,
     .min = 1,
     .max = 255,
     .help = "The session_id, the id of the row, or at least 4 characters that only one session "
             "begins with."},
    PARAM_USER_TENANT,
    {0},
};

/* Answers. */

#define TOO_LARGE                                                                                  \
    {                                                                                              \
        413, "Problem", "The body is too large."                                                   \
    }
#define BAD_TYPE                                                                                   \
    {                                                                                              \
        415, "Problem", "The body is not JSON."                                                    \
    }

const struct api_answer key_create_answers[] = {
    {201, "NewKey", "The key, shown this once."}, TOO_LARGE, BAD_TYPE, {0}};
const struct api_answer keys_answers[] = {{200, "KeyList", "A page of keys, by id."}, {0}};
const struct api_answer key_answers[] = {{200, "Key", "The key, without its secret."}, {0}};
const struct api_answer key_revoke_answers[] = {
    {200, "Key", "The key is revoked. Its streams are closed; calls under way still finish."}, {0}};

const struct api_answer secrets_answers[] = {
    {200, "SecretList", "All secrets, by name, without their values."}, {0}};
const struct api_answer secret_put_answers[] = {
    {204, NULL, "The secret is stored. The configuration is resolved again."},
    TOO_LARGE,
    BAD_TYPE,
    {0}};
const struct api_answer secret_remove_answers[] = {
    {204, NULL, "The secret is removed. Servers that use it do not start any more."}, {0}};

const struct api_answer session_details_answers[] = {
    {200, "SessionDetailList",
     "A page, newest first. It may be short or empty even if there is a next_cursor."},
    {0}};
const struct api_answer session_detail_answers[] = {{200, "SessionDetail", "The session."}, {0}};

const struct api_answer servers_answers[] = {{200, "ServerList", "A page of servers."}, {0}};
const struct api_answer server_answers[] = {{200, "Server", "The server."}, {0}};
const struct api_answer tools_answers[] = {{200, "ToolList", "A page of tools, as last seen."},
                                           {0}};
const struct api_answer restart_answers[] = {
    {202, NULL,
     "The server starts anew. Calls under way may finish within 30 s; sessions are told that its "
     "state is lost."},
    {0}};
const struct api_answer server_logs_answers[] = {
    {200, "ServerLog", "The newest stderr lines, oldest first."}, {0}};
const struct api_answer diff_answers[] = {
    {200, "ToolDiff",
     "The difference. An approval by this admin applies to the definition that is shown here."},
    {0}};
const struct api_answer approve_answers[] = {
    {200, "ToolsApproved",
     "The approved tools, at most 200 per request; `left` counts the others."},
    {409, "Problem", "A tool changed since it was shown, or has another digest."},
    TOO_LARGE,
    BAD_TYPE,
    {0},
};

const struct api_answer user_create_answers[] = {
    {201, "Account", "The new user."},
    {409, "Problem", "The username is taken."},
    TOO_LARGE,
    BAD_TYPE,
    {0},
};
const struct api_answer accounts_answers[] = {
    {200, "AccountList", "A page of users, by tenant and name."}, {0}};
const struct api_answer account_answers[] = {{200, "Account", "The user."}, {0}};
const struct api_answer account_patch_answers[] = {
    {200, "Account", "The user after the change."}, TOO_LARGE, BAD_TYPE, {0}};
const struct api_answer account_logins_answers[] = {{200, "UserSignInList", "The devices."}, {0}};
const struct api_answer sign_out_answers[] = {{200, "Message", "Signed out."}, {0}};

#define TOO_SLOW                                                                                   \
    {                                                                                              \
        504, "Problem", "The page took too long; ask for fewer rows."                              \
    }
const struct api_answer events_answers[] = {
    {200, "EventList", "A page of events."},
    {413, "Problem", "The page is too large; ask for fewer rows."},
    TOO_SLOW,
    {0},
};
const struct api_answer audit_executions_answers[] = {
    {200, "AuditExecutionList",
     "A page, newest first. It may be short or empty even if there is a next_cursor."},
    TOO_SLOW,
    {0},
};
const struct api_answer audit_execution_answers[] = {
    {200, "AuditExecutionDetail", "The execution."}, TOO_SLOW, {0}};
const struct api_answer verify_answers[] = {
    {200, "AuditProof", "Result of the verification of the chains of all tenants."},
    {409, "Problem", "Another verification is running."},
    TOO_SLOW,
    {0},
};
const struct api_answer audit_stats_answers[] = {{200, "AuditStats", "Sizes of the audit."}, {0}};
const struct api_answer system_answers[] = {{200, "System", "State of the program."}, {0}};

/* Members. */

#define PAGE_MEMBERS                                                                               \
    {"count", "integer", NULL, true, NULL, NULL, "Number of rows in this answer."},                \
    {                                                                                              \
        "next_cursor", "string|null", NULL, true, NULL, NULL,                                      \
            "Cursor of the next page; null if this is the last page."                              \
    }
#define KEY_MEMBERS                                                                                \
    {"id", "string", NULL, true, NULL, NULL, "Id of the key: the part of it that is not secret."}, \
        {"tenant", "string", NULL, true, NULL, NULL, "Tenant."},                                   \
        {"name", "string", NULL, true, NULL, NULL, "Name for people."},                            \
        {"role", "string", NULL, true, NULL, roles, "Role."},                                      \
        {"user_id", "string", NULL, false, "uuid", NULL, "User that the key acts for."},           \
        {"user_name", "string", NULL, false, NULL, NULL, "Name of that user; in a list."},         \
        {"scopes", "object", NULL, true, NULL, NULL, "Scopes that the key is limited to."},        \
        {"created_at", "string", NULL, true, "date-time", NULL, "Time of creation."},              \
        {"expires_at", "string|null", NULL, true, "date-time", NULL, "Time of expiry."},           \
        {"revoked_at", "string|null", NULL, true, "date-time", NULL, "Time of the revocation."},   \
    {                                                                                              \
        "last_used_at", "string|null", NULL, true, "date-time", NULL,                              \
            "Approximate time of the last use."                                                    \
    }

const struct api_member key_members[] = {KEY_MEMBERS, {0}};
const struct api_member new_key_members[] = {
    {"key", "string", NULL, true, NULL, NULL, "The key. Send it as Authorization: Bearer."},
    KEY_MEMBERS,
    {0},
};
const struct api_member secret_members[] = {
    {"name", "string", NULL, true, NULL, NULL, "Name, as in ${secret:NAME}."},
    {"created_at", "string", NULL, true, "date-time", NULL, "When it was first set."},
    {"updated_at", "string", NULL, true, "date-time", NULL, "When it was last set."},
    {"used_by", "array", NULL, true, NULL, NULL, "Configured servers that use it."},
    {0},
};
const struct api_member secret_list_members[] = {
    {"secrets", "array", "Secret", true, NULL, NULL, "The secrets, ordered by name."}, {0}};
const struct api_member key_list_members[] = {
    {"keys", "array", "Key", true, NULL, NULL, "The keys, ordered by id."}, PAGE_MEMBERS, {0}};

static const char *const session_statuses[] = {"active", "idle", "expired", "terminated", NULL};
static const char *const session_origins[] = {"rest",  "tool",     "transport", "derived",
                                              "keyed", "injected", NULL};
const struct api_member session_detail_members[] = {
    {"id", "string", NULL, true, "uuid", NULL, "Id of the row."},
    {"session_id", "string", NULL, true, NULL, NULL,
     "Name of the session; for MCP clients it is also the handle."},
    {"tenant_id", "string", NULL, true, NULL, NULL, "Tenant of the session."},
    {"status", "string", NULL, true, NULL, session_statuses, "Current status."},
    {"origin", "string", NULL, true, NULL, session_origins, "How the session was created."},
    {"carrier", "string", NULL, false, NULL, NULL, "The part of a request that names the session."},
    {"owner", "string", NULL, true, NULL, NULL, "Owner, inside the tenant."},
    {"user_name", "string", NULL, false, NULL, NULL, "Name of the user."},
    {"key_name", "string", NULL, false, NULL, NULL, "Name of the key, else its id."},
    {"edge_mcp_id", "string", NULL, true, NULL, NULL, "Node that the client is connected to."},
    {"client_name", "string", NULL, false, NULL, NULL, "Name that the client gives itself."},
    {"client_type", "string", NULL, false, NULL, NULL, "Kind of the client."},
    {"client_version", "string", NULL, false, NULL, NULL, "Version of the client."},
    {"servers", "array", NULL, true, NULL, NULL, "Servers that have a link to the session."},
    {"tool_execution_count", "integer", NULL, true, NULL, NULL, "Number of tool executions."},
    {"total_tokens_used", "integer", NULL, true, NULL, NULL, "Number of tokens used."},
    {"created_at", "string", NULL, true, "date-time", NULL, "Time of creation."},
    {"last_activity_at", "string", NULL, true, "date-time", NULL, "Time of the last use."},
    {"expires_at", "string", NULL, false, "date-time", NULL, "Time of expiry."},
    {"terminated_at", "string", NULL, false, "date-time", NULL, "Time of the end."},
    {"termination_reason", "string", NULL, false, NULL, NULL, "Reason of the end."},
    {"session_age", "integer", NULL, true, NULL, NULL, "Seconds since creation."},
    {"links", "array", "SessionLink", false, NULL, NULL, "The links; not in a list."},
    {"toolsets", "array", NULL, false, NULL, NULL, "Enabled toolsets; not in a list."},
    {"connection_metadata", "object", NULL, false, NULL, NULL,
     "Metadata of the client; not in a list."},
    {"core_session_id", "string", NULL, false, NULL, NULL,
     "Session of another system; not in a list."},
    {"lineage", "object", NULL, false, NULL, NULL,
     "The session that this one was forked, imported or replayed from."},
    {"context_id", "string", NULL, false, "uuid", NULL,
     "Id of the context document; not in a list."},
    {"context_bytes", "integer", NULL, false, NULL, NULL,
     "Size of the context document; not in a list."},
    {0},
};
const struct api_member session_detail_list_members[] = {
    {"sessions", "array", "SessionDetail", true, NULL, NULL, "The rows, newest first."},
    PAGE_MEMBERS,
    {0}};
const struct api_member session_link_members[] = {
    {"server", "string", NULL, true, NULL, NULL, "Name of the server."},
    {"is_live", "boolean", NULL, true, NULL, NULL, "Whether the link is open."},
    {"opened_at", "string", NULL, true, "date-time", NULL, "Time when the link was opened."},
    {"ended_at", "string", NULL, false, "date-time", NULL, "Time when the link ended."},
    {"end_reason", "string", NULL, false, NULL, NULL, "Reason of the end."},
    {0},
};

static const char *const server_states[] = {"healthy", "unknown",     "degraded",
                                            "down",    "not running", NULL};
static const char *const server_eras[] = {"legacy", "modern", NULL};
const struct api_member server_members[] = {
    {"name", "string", NULL, true, NULL, NULL, "Name in the configuration."},
    {"state", "string", NULL, true, NULL, server_states, "Current state."},
    {"reason", "string", NULL, false, NULL, NULL, "Reason of a state other than healthy."},
    {"last_error", "string", NULL, false, NULL, NULL, "Last error. It may be old."},
    {"calls", "integer", NULL, false, NULL, NULL, "Number of requests sent to the server."},
    {"failures", "integer", NULL, false, NULL, NULL, "Number of these requests that failed."},
    {"last_ok_at", "string", NULL, false, "date-time", NULL, "Time of the last successful answer."},
    {"last_failed_at", "string", NULL, false, "date-time", NULL, "Time of the last failure."},
    {"tools", "integer", NULL, false, NULL, NULL, "Number of tools in the current list."},
    {"prompts", "integer", NULL, false, NULL, NULL, "Number of prompts in the current list."},
    {"resources", "integer", NULL, false, NULL, NULL, "Number of resources in the current list."},
    {"era", "string", NULL, false, NULL, server_eras, "Protocol era that Holdfast found."},
    {"protocol_version", "string", NULL, false, NULL, NULL, "Negotiated protocol version."},
    {"probe_ms", "integer", NULL, false, NULL, NULL,
     "Milliseconds that it took to connect and to read the lists."},
    {"notes", "array", NULL, false, NULL, NULL, "Mistakes in the lists of the server."},
    {0},
};
const struct api_member server_list_members[] = {
    {"servers", "array", "Server", true, NULL, NULL, "The servers."}, PAGE_MEMBERS, {0}};

const struct api_member server_log_line_members[] = {
    {"at", "string", NULL, true, "date-time", NULL, "Time when Holdfast read the line."},
    {"number", "integer", NULL, true, NULL, NULL, "Number of the line since Holdfast started."},
    {"session", "string", NULL, false, NULL, NULL,
     "Row id of the session whose process wrote the line."},
    {"text", "string", NULL, true, NULL, NULL, "The line, with secrets replaced."},
    {0},
};
const struct api_member server_log_members[] = {
    {"server", "string", NULL, true, NULL, NULL, "Name of the server."},
    {"lines", "array", "ServerLogLine", true, NULL, NULL, "The lines, oldest first."},
    {0},
};

static const char *const tool_states[] = {"approved", "changed", "new", "gone", NULL};
#define TOOL_MEMBERS                                                                               \
    {"server", "string", NULL, true, NULL, NULL, "Server of the tool."},                           \
        {"name", "string", NULL, true, NULL, NULL, "Name of the tool, without the server."},       \
        {"state",                                                                                  \
         "string",                                                                                 \
         NULL,                                                                                     \
         true,                                                                                     \
         NULL,                                                                                     \
         tool_states,                                                                              \
         "State compared with the approved definition."},                                          \
        {"digest", "string", NULL, true, NULL, NULL, "Digest of the definition as last seen."},    \
        {"approved_digest",                                                                        \
         "string",                                                                                 \
         NULL,                                                                                     \
         false,                                                                                    \
         NULL,                                                                                     \
         NULL,                                                                                     \
         "Digest of the approved definition."},                                                    \
        {"first_seen_at",                                                                          \
         "string",                                                                                 \
         NULL,                                                                                     \
         false,                                                                                    \
         "date-time",                                                                              \
         NULL,                                                                                     \
         "Time when the tool was first seen."},                                                    \
        {"changed_at", "string", NULL, false, "date-time", NULL, "Time of the last change."},      \
        {"gone_at",                                                                                \
         "string",                                                                                 \
         NULL,                                                                                     \
         false,                                                                                    \
         "date-time",                                                                              \
         NULL,                                                                                     \
         "Time when the tool was last missing."},                                                  \
    {                                                                                              \
        "approved_at", "string", NULL, false, "date-time", NULL, "Time of the approval."           \
    }
const struct api_member tool_members[] = {
    TOOL_MEMBERS,
    {"definition", "object", NULL, false, NULL, NULL,
     "The definition as last seen, if it was asked for and is stored."},
    {0}};
const struct api_member tool_diff_members[] = {
    TOOL_MEMBERS,
    {"diff", "string", NULL, true, NULL, NULL,
     "Changes from the approved definition to the last one seen."},
    {0},
};
const struct api_member tool_list_members[] = {
    {"tools", "array", "Tool", true, NULL, NULL, "The tools, ordered by server and name."},
    PAGE_MEMBERS,
    {0}};
const struct api_member approved_members[] = {
    {"server", "string", NULL, true, NULL, NULL, "Name of the server."},
    {"approved", "integer", NULL, true, NULL, NULL, "Number of tools that this request approved."},
    {"left", "integer", NULL, true, NULL, NULL,
     "Number of tools that are left for the next request."},
    {"unseen", "integer", NULL, true, NULL, NULL,
     "Number of tools that were not approved, because they changed or are new since the list was "
     "shown."},
    {0},
};

const struct api_member account_members[] = {
    {"id", "string", NULL, true, "uuid", NULL, "The user's id."},
    {"username", "string", NULL, true, NULL, NULL, "Name of the user."},
    {"tenant_id", "string", NULL, true, NULL, NULL, "Tenant of the user."},
    {"role", "string", NULL, true, NULL, roles, "Role."},
    {"disabled", "boolean", NULL, true, NULL, NULL, "Whether the user is disabled."},
    {0},
};
const struct api_member account_list_members[] = {
    {"users", "array", "Account", true, NULL, NULL, "By tenant and name."}, PAGE_MEMBERS, {0}};
const struct api_member account_login_members[] = {
    SIGN_IN_MEMBERS,
    {0},
};
const struct api_member account_login_list_members[] = {
    {"sessions", "array", "UserSignIn", true, NULL, NULL,
     "The sign-ins, newest first, at most 200."},
    {"count", "integer", NULL, true, NULL, NULL, "Number of sign-ins."},
    {0},
};

/* A text with bytes that are not UTF-8 is an object with its hex digits. */
#define TEXT "string|object"
const struct api_member event_members[] = {
    {"id", "string", NULL, true, NULL, NULL, "Id: the number of the writer and a count."},
    {"kind", "string", NULL, true, NULL, event_kinds, "Kind of the event."},
    {"at_ms", "integer", NULL, true, NULL, NULL, "Time of writing, in milliseconds since 1970."},
    {"time", "string", NULL, true, "date-time", NULL, "The same time as text."},
    {"tenant", TEXT, NULL, true, NULL, NULL, "Tenant."},
    {"seq", "integer", NULL, true, NULL, NULL, "Position in the chain of the tenant and writer."},
    {"exec", "string", NULL, false, NULL, NULL, "Id of the intent that the event belongs to."},
    {"parent", "string", NULL, false, NULL, NULL, "Id of the execution that this one repeats."},
    {"owner", TEXT, NULL, false, NULL, NULL, "Owner of the call, inside the tenant."},
    {"session_id", TEXT, NULL, false, NULL, NULL, "Id of the session's row."},
    {"transport", TEXT, NULL, false, NULL, NULL, "Transport of the request."},
    {"carrier", TEXT, NULL, false, NULL, NULL, "Carrier that named the session."},
    {"server", TEXT, NULL, false, NULL, NULL, "Server that was called."},
    {"method", TEXT, NULL, false, NULL, NULL, "Method of MCP, or name of the action."},
    {"tool", TEXT, NULL, false, NULL, NULL, "Tool that was called."},
    {"era", TEXT, NULL, false, NULL, NULL, "Era of the client."},
    {"outcome", TEXT, NULL, false, NULL, NULL, "Outcome of the execution."},
    {"error", TEXT, NULL, false, NULL, NULL, "Error, or description of the event."},
    {"duration_us", "integer", NULL, true, NULL, NULL, "Duration in microseconds."},
    {"tokens", "integer", NULL, false, NULL, NULL, "Number of tokens used."},
    {"tool_id", TEXT, NULL, false, NULL, NULL, "Id of the known tool."},
    {"client", TEXT, NULL, false, NULL, NULL, "Name that the client gives itself."},
    {"request_len", "integer", NULL, false, NULL, NULL,
     "On an outcome and a record: size of the arguments in bytes."},
    {"origin", TEXT, NULL, false, NULL, NULL,
     "On an imported call: JSON with what its origin recorded besides."},
    {"body_len", "integer", NULL, true, NULL, NULL,
     "Size of the body in bytes; -1 if there is none."},
    {"body_sha", "string", NULL, false, NULL, NULL, "Digest of the whole body."},
    {"body", TEXT, NULL, false, NULL, NULL,
     "Arguments or result, as the audit stores them; bytes that are not text are written in hex."},
    {"stored_sha", "string", NULL, false, NULL, NULL, "Digest of the stored body."},
    {"mac", "string", NULL, false, NULL, NULL, "Seal of the event (HMAC)."},
    {0},
};
const struct api_member event_list_members[] = {
    {"events", "array", "Event", true, NULL, NULL, "The events, in the requested order."},
    {"scanned", "string", NULL, false, NULL, NULL,
     "Id of the last event that was examined, if the page was cut short."},
    PAGE_MEMBERS,
    {0},
};
const struct api_member audit_execution_members[] = {
    {"id", "string", NULL, true, NULL, NULL, "Id of the intent or the note."},
    {"time", "string", NULL, true, "date-time", NULL, "Time when the execution began."},
    {"tenant", "string", NULL, true, NULL, NULL, "Tenant."},
    {"owner", "string", NULL, false, NULL, NULL, "Owner of the call, inside the tenant."},
    {"session_id", "string", NULL, false, NULL, NULL, "Id of the session's row."},
    {"carrier", "string", NULL, false, NULL, NULL, "Carrier that named the session."},
    {"server", "string", NULL, false, NULL, NULL, "Server that was called."},
    {"method", "string", NULL, false, NULL, NULL, "Method of MCP."},
    {"tool", "string", NULL, false, NULL, NULL, "Tool that was called."},
    {"era", "string", NULL, false, NULL, NULL, "Era of the client."},
    {"parent", "string", NULL, false, NULL, NULL, "Id of the execution that this one repeats."},
    {"outcome", "string", NULL, true, NULL, NULL, "Outcome; open if there is none yet."},
    {"error", "string", NULL, false, NULL, NULL, "Error."},
    {"duration_us", "integer", NULL, false, NULL, NULL, "Duration in microseconds."},
    {"tokens", "integer", NULL, false, NULL, NULL, "Number of tokens used."},
    {"tool_id", "string", NULL, false, NULL, NULL, "Id of the known tool."},
    {"user_name", "string", NULL, false, NULL, NULL, "Name of the user."},
    {"key_name", "string", NULL, false, NULL, NULL,
     "Name of the key, or its id if it has no name."},
    {"client_name", "string", NULL, false, NULL, NULL, "Name that the client gives itself."},
    {"is_imported", "boolean", NULL, false, NULL, NULL,
     "true: another Holdfast recorded the call; listed with its session alone."},
    {"arguments_line", "string", NULL, false, NULL, NULL,
     "Arguments in one line, as the audit stores them, at most 400 bytes."},
    {"reply_line", "string", NULL, false, NULL, NULL,
     "First line of what the server said to a call that failed, at most 400 bytes."},
    {0},
};
const struct api_member audit_execution_list_members[] = {
    {"executions", "array", "AuditExecution", true, NULL, NULL, "The executions, newest first."},
    PAGE_MEMBERS,
    {0},
};
const struct api_member audit_execution_detail_members[] = {
    {"execution", "object", "AuditExecution", true, NULL, NULL, "The execution."},
    {"events", "array", "Event", true, NULL, NULL,
     "The events of the execution, with their bodies."},
    {0},
};
const struct api_member removed_members[] = {
    {"tenant", "string", NULL, true, NULL, NULL, "The tenant."},
    {"writer", "integer", NULL, true, NULL, NULL, "The writer of the events."},
    {"first", "string", NULL, true, NULL, NULL, "Id of the first removed event."},
    {"last", "string", NULL, true, NULL, NULL, "Id of the last removed event."},
    {"events", "integer", NULL, true, NULL, NULL, "Number of removed events of this tenant."},
    {"by_keep", "integer", NULL, true, NULL, NULL, "How many of them audit.keep removed."},
    {"by_max_size", "integer", NULL, true, NULL, NULL, "How many audit.max_size removed."},
    {"oldest", "string", NULL, true, "date-time", NULL, "Time of the oldest of them."},
    {"newest", "string", NULL, true, "date-time", NULL, "Time of the newest of them."},
    {"removed_at", "string", NULL, true, "date-time", NULL, "When the last of them was removed."},
    {"rule", "string", NULL, true, NULL, NULL, "The rule by which it was removed."},
    {0},
};
const struct api_member verify_members[] = {
    {"ok", "boolean", NULL, true, NULL, NULL, "Whether no event was changed or removed."},
    {"last_anchor", "string", NULL, false, "date-time", NULL,
     "Time of the last anchor; events up to it cannot be removed unnoticed. Absent if there is no "
     "anchor yet."},
    {"events", "integer", NULL, false, NULL, NULL,
     "Number of checked events. This member and the following ones appear on the unix socket "
     "only."},
    {"writers", "integer", NULL, false, NULL, NULL, "Number of writers."},
    {"anchors", "integer", NULL, false, NULL, NULL, "Number of anchors among the events."},
    {"bodies_deleted", "integer", NULL, false, NULL, NULL, "Number of bodies that were deleted."},
    {"unproven", "integer", NULL, false, NULL, NULL, "Number of events after the last anchor."},
    {"removed", "integer", NULL, false, NULL, NULL, "Number of events that retention removed."},
    {"checkpoints", "array", "RemovedEvents", false, NULL, NULL,
     "What retention removed, by writer and tenant; the first 100."},
    {"reason", "string", NULL, false, NULL, NULL, "Description of the first wrong event."},
    {0},
};
const struct api_member audit_size_members[] = {
    {"tenant", "string", NULL, true, NULL, NULL, "Tenant; `_system`: events of Holdfast itself."},
    {"events", "integer", NULL, true, NULL, NULL, "Number of events."},
    {"event_bytes", "integer", NULL, true, NULL, NULL,
     "Bytes of the events without their bodies, before the database packs them."},
    {"bodies", "integer", NULL, true, NULL, NULL, "Number of stored bodies."},
    {"body_bytes", "integer", NULL, true, NULL, NULL, "Bytes of the stored bodies, likewise."},
    {"bytes", "integer", NULL, true, NULL, NULL, "The sum of both."},
    {"events_per_day", "integer", NULL, true, NULL, NULL,
     "Events a day, over the last seven days."},
    {"bytes_per_day", "integer", NULL, true, NULL, NULL,
     "Bytes a day, over the last seven days, of what is still stored."},
    {"oldest_at", "string", NULL, true, "date-time", NULL,
     "Time of the oldest event; after a removal exact to the day."},
    {"newest_at", "string", NULL, true, "date-time", NULL, "Time of the newest event."},
    {"rules", "object", "AuditRules", true, NULL, NULL, "What is removed (audit.*)."},
    {"removed_events", "integer", NULL, false, NULL, NULL,
     "Number of events that were removed. Absent if none was."},
    {"removed_at", "string", NULL, false, "date-time", NULL, "Time of the last such removal."},
    {0},
};
const struct api_member audit_rules_members[] = {
    {"keep_seconds", "integer", NULL, false, NULL, NULL,
     "Age at which events are removed; absent: never."},
    {"bodies_seconds", "integer", NULL, false, NULL, NULL,
     "Age at which bodies are removed; absent: with their events."},
    {"max_size_bytes", "integer", NULL, false, NULL, NULL,
     "Bytes of events and bodies beyond which the oldest are removed; absent: no limit."},
    {0},
};
const struct api_member audit_database_members[] = {
    {"bytes", "integer", NULL, true, NULL, NULL, "Size of the database."},
    {"free_bytes", "integer", NULL, false, NULL, NULL,
     "Of that, pages that are free to be used again. Absent with PostgreSQL."},
    {"wal_bytes", "integer", NULL, false, NULL, NULL,
     "Size of the write-ahead log beside the file. Absent with PostgreSQL."},
    {0},
};
const struct api_member audit_disk_members[] = {
    {"free_bytes", "integer", NULL, true, NULL, NULL, "Free bytes of the disk."},
    {"reserve_bytes", "integer", NULL, true, NULL, NULL,
     "Of that, what Holdfast keeps free (limits.disk_reserve)."},
    {"days_left", "integer", NULL, false, NULL, NULL,
     "Days until the reserve is reached, if the audit grows on as in the last seven days. Absent "
     "if it does not grow, or if its rules remove enough."},
    {0},
};
const struct api_member audit_stats_members[] = {
    {"tenants", "array", "AuditSize", true, NULL, NULL,
     "The caller's tenant; on the unix socket every tenant, or the one in ?tenant=. A tenant "
     "without events is missing."},
    {"uncounted", "integer", NULL, true, NULL, NULL,
     "Number of events, approximately, that an older Holdfast wrote and that are not counted yet; "
     "0 "
     "soon after the upgrade."},
    {"database", "object", "AuditDatabase", false, NULL, NULL,
     "The database. On the unix socket only, without ?tenant=; so is the next member."},
    {"disk", "object", "AuditDisk", false, NULL, NULL,
     "The disk of the database. Absent with PostgreSQL."},
    {0},
};
const struct api_member system_members[] = {
    {"version", "string", NULL, true, NULL, NULL, "The version of Holdfast."},
    {"stopping", "boolean", NULL, true, NULL, NULL, "Whether the program is stopping."},
    {"calls_in_flight", "integer", NULL, true, NULL, NULL, "Number of calls under way."},
    {"store_healthy", "boolean", NULL, true, NULL, NULL, "Whether the store can be written."},
    {"database", "string", NULL, false, NULL, NULL,
     "Name of the database; on the unix socket only, like the members up to auth_required."},
    {"pid", "integer", NULL, false, NULL, NULL, "Process id; only of a running daemon."},
    {"started_at", "string", NULL, false, "date-time", NULL, "When the daemon started."},
    {"url", "string", NULL, false, NULL, NULL,
     "Address of the listener, such as http://127.0.0.1:4653; absent if it only serves pipes."},
    {"data_dir", "string", NULL, false, NULL, NULL, "The data directory."},
    {"config", "string", NULL, false, NULL, NULL,
     "Path of the configuration file, if there is one."},
    {"auth_required", "boolean", NULL, false, NULL, NULL, "Whether callers need a credential."},
    {"limits", "object", NULL, true, NULL, NULL,
     "Limits of the caller's tenant (tenant), of each of its keys (key), and of one request."},
    {0},
};
