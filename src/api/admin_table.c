/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters, answers and members of the operations for administrators. */
#include "api/admin_table.h"

static const char *const roles[] = {"admin", "member", "auditor", "service", NULL};

/* Parameters. */

#define PARAM_TENANT                                                                               \
    {                                                                                              \
        .name = "tenant", .in = "query", .type = "string", .min = 1, .max = 64,                    \
        .help = "The caller's tenant.  On the unix socket any tenant; without it, all."            \
    }
#define PARAM_LIMIT                                                                                \
    {                                                                                              \
        .name = "limit", .in = "query", .type = "integer", .min = 1, .max = STORE_PAGE_MAX,        \
        .default_text = "50", .help = "Rows in a page."                                            \
    }
#define PARAM_CURSOR                                                                               \
    {                                                                                              \
        .name = "cursor", .in = "query", .type = "string", .min = 1, .max = 2000,                  \
        .help = "next_cursor of the page before."                                                  \
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

#define PARAM_SERVER                                                                               \
    {                                                                                              \
        .name = "name", .in = "path", .type = "string", .is_required = true, .min = 1, .max = 255, \
        .help = "The server's name."                                                               \
    }
const struct api_param page_params[] = {PARAM_LIMIT, PARAM_CURSOR, {0}};
const struct api_param server_params[] = {PARAM_SERVER, {0}};
const struct api_param server_page_params[] = {PARAM_SERVER, PARAM_LIMIT, PARAM_CURSOR, {0}};
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
        .help = "The caller's tenant.  On the unix socket any tenant; without it, `default`."      \
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
static const char *const event_kinds[] = {"intent",  "outcome", "note",   "anchor", "writer",
                                          "session", "system",  "record", NULL};
static const char *const orders[] = {"oldest", "newest", NULL};
static const char *const flags[] = {"0", "1", NULL};
const struct api_param events_params[] = {
    QUERY_TEXT("after", "Only events after this id, such as 3.17."),
    QUERY_TEXT("before", "Only events before this id."),
    QUERY_TEXT("exec", "Only the events of this execution."),
    QUERY_TEXT("since", "Not older than this: milliseconds since 1970."),
    PARAM_TENANT,
    QUERY_TEXT("session", "Only those of this session, by the id of its row."),
    QUERY_TEXT("session_prefix", "How the id of the session begins."),
    QUERY_TEXT("server", "Only those of this server."),
    QUERY_TEXT("tool", "Only those of this tool."),
    QUERY_TEXT("outcome", "Only those with this outcome."),
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
     .help = "Which come first."},
    {.name = "bodies",
     .in = "query",
     .type = "string",
     .names = flags,
     .default_text = "0",
     .help = "1: with arguments and results as they are kept."},
    {.name = "limit",
     .in = "query",
     .type = "integer",
     .min = 1,
     .max = STORE_PAGE_MAX,
     .default_text = "100",
     .help = "Rows in a page."},
    PARAM_CURSOR,
    {0},
};
const struct api_param audit_executions_params[] = {
    PARAM_TENANT,
    QUERY_TEXT("server", "Only those of this server."),
    QUERY_TEXT("tool", "Only those of this tool."),
    QUERY_TEXT("session", "How the id of the session begins."),
    QUERY_TEXT("outcome", "Only those with this outcome; open: without one."),
    QUERY_TEXT("since", "Not older than this: 30m, 24h, 7d."),
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
     .help = "The id of its intent, its outcome or its note, such as 3.17."},
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
    {200, "Key", "It is revoked: its streams are closed, calls under way still end."}, {0}};

const struct api_answer servers_answers[] = {{200, "ServerList", "A page of servers."}, {0}};
const struct api_answer server_answers[] = {{200, "Server", "The server."}, {0}};
const struct api_answer tools_answers[] = {{200, "ToolList", "A page of tools, as last seen."},
                                           {0}};
const struct api_answer diff_answers[] = {
    {200, "ToolDiff", "The difference; when an admin approves, it is what was shown."}, {0}};
const struct api_answer approve_answers[] = {
    {200, "ToolsApproved", "At most 200 at once; `left` counts the rest."},
    {409, "Problem", "A tool changed since it was shown, or has another digest."},
    TOO_LARGE,
    BAD_TYPE,
    {0},
};

const struct api_answer user_create_answers[] = {
    {201, "Account", "The user; it can sign in now."},
    {409, "Problem", "There is such a user already."},
    TOO_LARGE,
    BAD_TYPE,
    {0},
};
const struct api_answer account_answers[] = {{200, "Account", "The user."}, {0}};
const struct api_answer account_patch_answers[] = {
    {200, "Account", "The user as it is now."}, TOO_LARGE, BAD_TYPE, {0}};
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
     "A page, newest first.  It may be short or empty while there is a next_cursor."},
    TOO_SLOW,
    {0},
};
const struct api_answer audit_execution_answers[] = {
    {200, "AuditExecutionDetail", "The execution."}, TOO_SLOW, {0}};
const struct api_answer verify_answers[] = {
    {200, "AuditProof", "Whether the chains of all tenants are whole."},
    {409, "Problem", "A verification is under way."},
    TOO_SLOW,
    {0},
};
const struct api_answer system_answers[] = {{200, "System", "How it is."}, {0}};

/* Members. */

#define PAGE_MEMBERS                                                                               \
    {"count", "integer", NULL, true, NULL, NULL, "Rows in this answer."},                          \
    {                                                                                              \
        "next_cursor", "string|null", NULL, true, NULL, NULL, "Where the next page begins."        \
    }
#define KEY_MEMBERS                                                                                \
    {"id", "string", NULL, true, NULL, NULL, "Its id: the part of a key that is no secret."},      \
        {"tenant", "string", NULL, true, NULL, NULL, "Whose it is."},                              \
        {"name", "string", NULL, true, NULL, NULL, "What people call it."},                        \
        {"role", "string", NULL, true, NULL, roles, "What it may do."},                            \
        {"user_id", "string", NULL, false, "uuid", NULL, "The user it speaks for."},               \
        {"scopes", "object", NULL, true, NULL, NULL, "What it is limited to."},                    \
        {"created_at", "string", NULL, true, "date-time", NULL, "When it was made."},              \
        {"expires_at", "string|null", NULL, true, "date-time", NULL, "When it ends by itself."},   \
        {"revoked_at", "string|null", NULL, true, "date-time", NULL, "When it was revoked."},      \
    {                                                                                              \
        "last_used_at", "string|null", NULL, true, "date-time", NULL, "Its last use, about."       \
    }

const struct api_member key_members[] = {KEY_MEMBERS, {0}};
const struct api_member new_key_members[] = {
    {"key", "string", NULL, true, NULL, NULL, "Send it as Authorization: Bearer."},
    KEY_MEMBERS,
    {0},
};
const struct api_member key_list_members[] = {
    {"keys", "array", "Key", true, NULL, NULL, "By id."}, PAGE_MEMBERS, {0}};

static const char *const server_states[] = {"healthy", "unknown",     "degraded",
                                            "down",    "not running", NULL};
const struct api_member server_members[] = {
    {"name", "string", NULL, true, NULL, NULL, "Its name in the configuration."},
    {"state", "string", NULL, true, NULL, server_states, "As of now."},
    {"reason", "string", NULL, false, NULL, NULL, "Why it is not well."},
    {"last_error", "string", NULL, false, NULL, NULL, "Its last error, which may be old."},
    {"calls", "integer", NULL, false, NULL, NULL, "Requests sent to it."},
    {"failures", "integer", NULL, false, NULL, NULL, "Those of them that failed."},
    {"last_ok_at", "string", NULL, false, "date-time", NULL, "When it answered last."},
    {"last_failed_at", "string", NULL, false, "date-time", NULL, "When it failed last."},
    {"tools", "integer", NULL, false, NULL, NULL, "Tools in its list now."},
    {"notes", "array", NULL, false, NULL, NULL, "Faults in its lists."},
    {0},
};
const struct api_member server_list_members[] = {
    {"servers", "array", "Server", true, NULL, NULL, "As configured."}, PAGE_MEMBERS, {0}};

static const char *const tool_states[] = {"approved", "changed", "new", "gone", NULL};
#define TOOL_MEMBERS                                                                               \
    {"server", "string", NULL, true, NULL, NULL, "Whose it is."},                                  \
        {"name", "string", NULL, true, NULL, NULL, "Its own name."},                               \
        {"state", "string", NULL, true, NULL, tool_states, "Against what was approved."},          \
        {"digest", "string", NULL, true, NULL, NULL, "Of its definition as last seen."},           \
        {"approved_digest", "string", NULL, false, NULL, NULL, "Of the approved definition."},     \
        {"first_seen_at", "string", NULL, false, "date-time", NULL, "When it came."},              \
        {"changed_at", "string", NULL, false, "date-time", NULL, "When it changed last."},         \
        {"gone_at", "string", NULL, false, "date-time", NULL, "When it was last missing."},        \
    {                                                                                              \
        "approved_at", "string", NULL, false, "date-time", NULL, "When it was approved."           \
    }
const struct api_member tool_members[] = {TOOL_MEMBERS, {0}};
const struct api_member tool_diff_members[] = {
    TOOL_MEMBERS,
    {"diff", "string", NULL, true, NULL, NULL, "From the approved definition to the last."},
    {0},
};
const struct api_member tool_list_members[] = {
    {"tools", "array", "Tool", true, NULL, NULL, "By server and name."}, PAGE_MEMBERS, {0}};
const struct api_member approved_members[] = {
    {"server", "string", NULL, true, NULL, NULL, "Whose tools."},
    {"approved", "integer", NULL, true, NULL, NULL, "Tools approved now."},
    {"left", "integer", NULL, true, NULL, NULL, "Tools that wait for the next request."},
    {"unseen", "integer", NULL, true, NULL, NULL,
     "Not approved: changed or new since the others were shown."},
    {0},
};

const struct api_member account_members[] = {
    {"id", "string", NULL, true, "uuid", NULL, "The user's id."},
    {"username", "string", NULL, true, NULL, NULL, "Its name."},
    {"tenant_id", "string", NULL, true, NULL, NULL, "Its tenant."},
    {"role", "string", NULL, true, NULL, roles, "What it may do."},
    {"disabled", "boolean", NULL, true, NULL, NULL, "It may not sign in."},
    {0},
};
const struct api_member account_login_members[] = {
    {"id", "string", NULL, true, "uuid", NULL, "The sign-in's id."},
    {"ip_address", "string", NULL, true, NULL, NULL, "Where it was used from last."},
    {"device_info", "object", NULL, true, NULL, NULL, "user_agent and device_name, where told."},
    {"created_at", "string", NULL, true, "date-time", NULL, "When the user signed in."},
    {"last_activity", "string", NULL, true, "date-time", NULL, "When it was refreshed last."},
    {"expires_at", "string", NULL, true, "date-time", NULL, "When it ends unless refreshed."},
    {0},
};
const struct api_member account_login_list_members[] = {
    {"sessions", "array", "UserSignIn", true, NULL, NULL, "Newest first, at most 200."},
    {"count", "integer", NULL, true, NULL, NULL, "How many."},
    {0},
};

/* A text with bytes that are not UTF-8 is an object with its hex digits. */
#define TEXT "string|object"
const struct api_member event_members[] = {
    {"id", "string", NULL, true, NULL, NULL, "The number of its writer, and a count."},
    {"kind", "string", NULL, true, NULL, event_kinds, "What kind of event it is."},
    {"at_ms", "integer", NULL, true, NULL, NULL,
     "When it was written, in milliseconds since 1970."},
    {"time", "string", NULL, true, "date-time", NULL, "The same as a text."},
    {"tenant", TEXT, NULL, true, NULL, NULL, "Whose it is."},
    {"seq", "integer", NULL, true, NULL, NULL, "Its place in the chain of its tenant and writer."},
    {"exec", "string", NULL, false, NULL, NULL, "The intent that it belongs to."},
    {"parent", "string", NULL, false, NULL, NULL, "The execution that it repeats."},
    {"owner", TEXT, NULL, false, NULL, NULL, "Who called, inside the tenant."},
    {"session_id", TEXT, NULL, false, NULL, NULL, "The session it belongs to."},
    {"transport", TEXT, NULL, false, NULL, NULL, "The transport it came by."},
    {"carrier", TEXT, NULL, false, NULL, NULL, "What named the session."},
    {"server", TEXT, NULL, false, NULL, NULL, "The server that was called."},
    {"method", TEXT, NULL, false, NULL, NULL, "The method of MCP, or what was done."},
    {"tool", TEXT, NULL, false, NULL, NULL, "The tool that was called."},
    {"era", TEXT, NULL, false, NULL, NULL, "The era of the client."},
    {"outcome", TEXT, NULL, false, NULL, NULL, "How it ended."},
    {"error", TEXT, NULL, false, NULL, NULL, "What went wrong, or what happened."},
    {"duration_us", "integer", NULL, true, NULL, NULL, "How long it took."},
    {"tokens", "integer", NULL, false, NULL, NULL, "Tokens used."},
    {"tool_id", TEXT, NULL, false, NULL, NULL, "The known tool."},
    {"body_len", "integer", NULL, true, NULL, NULL, "Bytes of the body; -1: none."},
    {"body_sha", "string", NULL, false, NULL, NULL, "The digest of the whole body."},
    {"body", TEXT, NULL, false, NULL, NULL,
     "Arguments or result as they are kept; bytes that are no text as hex."},
    {"stored_sha", "string", NULL, false, NULL, NULL, "The digest of the body as it is kept."},
    {"mac", "string", NULL, false, NULL, NULL, "Its seal."},
    {0},
};
const struct api_member event_list_members[] = {
    {"events", "array", "Event", true, NULL, NULL, "In the order that was asked for."},
    {"scanned", "string", NULL, false, NULL, NULL,
     "The event that was looked at last, when the page was cut short."},
    PAGE_MEMBERS,
    {0},
};
const struct api_member audit_execution_members[] = {
    {"id", "string", NULL, true, NULL, NULL, "The id of its intent or note."},
    {"time", "string", NULL, true, "date-time", NULL, "When it began."},
    {"tenant", "string", NULL, true, NULL, NULL, "Whose it is."},
    {"owner", "string", NULL, false, NULL, NULL, "Who called, inside the tenant."},
    {"session_id", "string", NULL, false, NULL, NULL, "The session it ran in."},
    {"carrier", "string", NULL, false, NULL, NULL, "What named the session."},
    {"server", "string", NULL, false, NULL, NULL, "The server that was called."},
    {"method", "string", NULL, false, NULL, NULL, "The method of MCP."},
    {"tool", "string", NULL, false, NULL, NULL, "The tool that was called."},
    {"era", "string", NULL, false, NULL, NULL, "The era of the client."},
    {"parent", "string", NULL, false, NULL, NULL, "The execution that it repeats."},
    {"outcome", "string", NULL, true, NULL, NULL, "How it ended; open while it has not."},
    {"error", "string", NULL, false, NULL, NULL, "What went wrong."},
    {"duration_us", "integer", NULL, false, NULL, NULL, "How long it took."},
    {"tokens", "integer", NULL, false, NULL, NULL, "Tokens used."},
    {"tool_id", "string", NULL, false, NULL, NULL, "The known tool."},
    {0},
};
const struct api_member audit_execution_list_members[] = {
    {"executions", "array", "AuditExecution", true, NULL, NULL, "Newest first."},
    PAGE_MEMBERS,
    {0},
};
const struct api_member audit_execution_detail_members[] = {
    {"execution", "object", "AuditExecution", true, NULL, NULL, "The execution."},
    {"events", "array", "Event", true, NULL, NULL, "Its events, with their bodies."},
    {0},
};
const struct api_member verify_members[] = {
    {"ok", "boolean", NULL, true, NULL, NULL, "No event was changed or removed."},
    {"last_anchor", "string", NULL, false, "date-time", NULL,
     "A cut tail shows up to here; absent while there is no anchor."},
    {"events", "integer", NULL, false, NULL, NULL,
     "Events checked; this and the rest on the unix socket alone."},
    {"writers", "integer", NULL, false, NULL, NULL, "Processes that wrote them."},
    {"anchors", "integer", NULL, false, NULL, NULL, "Anchors among them."},
    {"bodies_deleted", "integer", NULL, false, NULL, NULL, "Bodies that are no longer kept."},
    {"unproven", "integer", NULL, false, NULL, NULL, "Events after the last anchor."},
    {"reason", "string", NULL, false, NULL, NULL, "The first event that is wrong."},
    {0},
};
const struct api_member system_members[] = {
    {"version", "string", NULL, true, NULL, NULL, "The version of Holdfast."},
    {"stopping", "boolean", NULL, true, NULL, NULL, "It takes no new work."},
    {"calls_in_flight", "integer", NULL, true, NULL, NULL, "Calls that servers are working on."},
    {"store_healthy", "boolean", NULL, true, NULL, NULL, "The store can be written."},
    {"database", "string", NULL, false, NULL, NULL, "Its name; on the unix socket alone."},
    {"limits", "object", NULL, true, NULL, NULL,
     "Of the caller's tenant (tenant), of each of its keys (key), and of one request."},
    {0},
};
