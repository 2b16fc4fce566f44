/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the store, as plain structs of spans.  Code above the store fills and reads them;
 * only backends know SQL.  An absent str is NULL in the database.  Times are milliseconds of
 * clock_life_ms(), but times of events are milliseconds of the wall clock; 0 = never. */
#ifndef HOLDFAST_STORE_ROWS_H
#define HOLDFAST_STORE_ROWS_H

#include "base/principal.h"
#include "base/str.h"

/* Event ids are 64-bit numbers: writer number << 40 | count of that writer.  Shown as "3.1234". */
#define EVENT_WRITER_SHIFT 40
#define EVENT_COUNT_MASK ((INT64_C(1) << EVENT_WRITER_SHIFT) - 1)

enum session_status { SESSION_ACTIVE, SESSION_IDLE, SESSION_EXPIRED, SESSION_TERMINATED };
/* How the session was created; affects whether it counts against the tenant's limit. */
enum session_origin {
    ORIGIN_REST,
    ORIGIN_TOOL,
    ORIGIN_TRANSPORT,
    ORIGIN_DERIVED,
    ORIGIN_KEYED,
    ORIGIN_INJECTED
};
/* As stored and shown: "active", "rest" … */
const char *session_status_name(enum session_status status);
const char *session_origin_name(enum session_origin origin);
must_check bool session_status_parse(struct str name, enum session_status *ret);
must_check bool session_origin_parse(struct str name, enum session_origin *ret);

/* A session ends at most this long after its creation, however often it is used. */
#define SESSION_LIFE_MAX_MS (INT64_C(30) * 24 * 3600 * 1000)
/* If a session ends within this time, its end may pass before its events are folded. */
#define SESSION_END_NEAR_MS (INT64_C(60) * 1000)
/* A transport expires after this long without use. */
#define TRANSPORT_IDLE_MS (INT64_C(24) * 3600 * 1000)

struct session_row {
    struct str id;     /* UUIDv7 text; key of the row */
    struct str handle; /* "ses_…" or a REST caller's session_id; unique per tenant */
    struct str tenant, owner;
    struct str user_id;
    struct str edge_mcp_id; /* never absent */
    struct str client_name, client_type, client_version;
    enum session_status status;
    enum session_origin origin;
    bool initialized;
    bool provisional;       /* stored, short-lived, uncounted */
    bool counted;           /* against the tenant's limit */
    struct str carrier;     /* named by: "header", "meta:session_id", "client-id", "derived" … */
    struct str carrier_key; /* for keyed and derived sessions: (owner, carrier, carrier_key) is
                               unique while live */
    struct str core_session_id;
    struct str connection_metadata; /* JSON */
    struct str context_id;
    struct str sealed_auth; /* credentials for other services; see session/sealed.h */
    /* Context values that the client gave at the start of the session, sealed likewise; absent:
     * none. */
    struct str sealed_context;
    /* Keys of the enabled toolsets, separated by commas; absent: none. */
    struct str toolsets;
    /* JSON: what a template or an administrator laid down for the session; absent: nothing. */
    struct str setup;
    /* JSON: the session that this one was forked, imported or replayed from; absent: none.  Written
     * once, when the session is made. */
    struct str lineage;
    int64_t created_ms, last_activity_ms, expires_ms, terminated_ms;
    int64_t ttl_ms; /* explicit ttl; 0 = sliding: use moves expires_ms along by as much as
                     * last_activity_ms moved, up to created_ms + SESSION_LIFE_MAX_MS */
    struct str termination_reason;
    int64_t tool_count, tokens_used;
    /* From 1.  Every verb that writes the row increments it, except for OP_SESSION_RESEAL.  The
     * fold does not, nor does the reaper when it stores that the session is idle. */
    int64_t version;
};
/* Active or idle, and not past its end. */
bool session_row_is_live(const struct session_row *row, int64_t now_ms);
/* True when the session counts against its tenant's limit now.  A session that was counted only
 * because its handle came back stops counting after this long without use, and counts again when it
 * is used. */
#define SESSION_PROMOTED_IDLE_MS (INT64_C(30) * 60 * 1000)
bool session_row_counts(const struct session_row *row, int64_t now_ms);
/* Sets a live status to expired when the session is past its end, as every reader must see it. */
void session_row_apply_expiry(struct session_row *row, int64_t now_ms);
/* As session_row_apply_expiry(), and sets active or idle by the last use instead of the stored
 * status.  For rows that are shown. */
void session_row_apply_idle(struct session_row *row, int64_t now_ms, int64_t idle_ms);

struct transport_row {
    uint8_t id_hash[32]; /* SHA-256 of the Mcp-Session-Id */
    struct str tenant, owner;
    struct str endpoint; /* "/mcp/files" */
    struct str protocol_version;
    struct str initialize_params; /* the client's bytes, unchanged */
    struct str session_id;        /* linked session (row id), absent until the first call */
    int64_t created_ms, last_used_ms;
    int64_t ended_ms; /* when the client sent DELETE */
};

/* The last link of a session to a server.  If the row's writer or child process is gone, state was
 * lost. */
struct link_row {
    struct str session_id, server;
    int64_t writer; /* number of the writer that holds the live link; 0 after its end */
    /* Session id at an HTTP server; see link_resume() in upstream/upstream.h. */
    struct str remote_id;
    int64_t opened_ms, ended_ms;
    struct str end_reason;
};

/* A result that did not reach its client.  It is returned when the same session repeats the
 * request. */
struct undelivered_row {
    int64_t id; /* chosen by the caller, never used before */
    struct str tenant, owner, session_id;
    uint8_t digest[32]; /* of the request */
    int64_t exec;       /* the execution it came from; 0: not audited */
    int64_t created_ms, expires_ms;
    struct str sealed; /* absent in lists */
    int64_t sealed_len;
};

enum event_kind {
    EVENT_INTENT,
    EVENT_OUTCOME,
    EVENT_NOTE,    /* these three: executions */
    EVENT_ANCHOR,  /* holds the heads of all chains */
    EVENT_WRITER,  /* start or stop of a writer */
    EVENT_SESSION, /* session created or ended */
    EVENT_SYSTEM,
    /* An execution reported through REST: intent and outcome in one.  exec is the event's own id.
     * The body is {"arguments":…,"result":…}, with only the members that were reported. */
    EVENT_RECORD,
    /* A call that another Holdfast recorded, read from a file: intent and outcome in one.  It ran
     * elsewhere, so no fold, counter, quota or statistic of this Holdfast counts it.  exec is the
     * event's own id, at_ms the time of the import; `origin` has the rest.  The body is
     * {"params":…,"result":…}, see recording/imported.h. */
    EVENT_IMPORT,
};

/* One append-only record.  The MAC covers every field but `body`; it covers the digest of `body`,
 * so a body may be deleted later without breaking the chain. */
struct event_row {
    int64_t id; /* see EVENT_WRITER_SHIFT; set by the write lane */
    struct str tenant;
    int64_t seq; /* per (tenant, writer), from 1; set by the write lane */
    int64_t at_ms;
    enum event_kind kind;
    /* The own id on an intent and a record, the intent's id on an outcome and a note; else 0. */
    int64_t exec;
    int64_t parent; /* exec that is retried, or whose result is redelivered; else 0 */
    struct str owner;
    struct str session_id; /* row id */
    struct str transport;  /* 8 hex digits of the hash, for people */
    struct str carrier;
    struct str server, method, tool;
    struct str era; /* "2025-11-25>2026-07-28": client side > upstream side */
    /* ok tool_error error timeout cancelled refused upstream_lost indeterminate; on a note also
     * redelivered: nothing ran, and the client got the result of `parent` */
    struct str outcome;
    struct str error; /* one sentence */
    int64_t duration_us;
    int64_t tokens;         /* used, as the client or the server reported; ≥ 0 */
    struct str tool_id;     /* UUID of a tool_configuration, as reported; else absent */
    struct str client;      /* name that the client of an execution gives itself */
    int64_t request_len;    /* on an outcome and a record: bytes of the arguments; 0: unknown */
    struct str origin;      /* JSON: an import as its origin recorded it; else absent */
    int64_t body_len;       /* of the original bytes */
    uint8_t body_sha[32];   /* of the original bytes; zero when body_len < 0 (no body) */
    struct str body;        /* redacted and cut; absent when not kept */
    uint8_t stored_sha[32]; /* of `body` as stored; zero when absent */
    uint8_t mac[32];
    /* The event as bytes (store/record.h) while it is being appended, made by the code that sealed
     * it; absent: the store makes them. */
    struct str record;
};

/* An execution as session_tool_executions shows it: intent and outcome joined, or a record
 * alone. */
struct execution_row {
    int64_t exec; /* event id of the intent or record; shown as a UUID, see execution_uuid() */
    struct str session_id; /* row id */
    struct str server;     /* absent on records */
    struct str tool_name, tool_id;
    struct str arguments, result; /* JSON as stored (redacted, cut); absent when not stored or not
                                   * requested */
    struct str outcome;           /* "open" while there is no outcome */
    struct str error;
    int64_t duration_ms; /* -1: unknown */
    int64_t tokens;      /* -1: not reported */
    int64_t executed_ms;
};
#define EXECUTION_UUID_TEXT 37
/* The public name of an execution: a UUID (version 8) that holds only the event id. */
void execution_uuid(int64_t exec, char ret[EXECUTION_UUID_TEXT]);
must_check bool execution_uuid_parse(struct str uuid, int64_t *ret_exec);

#define TOOL_UUID_TEXT 37
/* The id of a tool's row in tool_configurations: a UUID (version 8) derived from tenant, server and
 * tool, so that it is the same in every store. */
void tool_uuid(struct str tenant, struct str server, struct str tool, char ret[TOOL_UUID_TEXT]);

struct tenant_row {
    struct str id; /* name of the tenant, as in a principal */
    int64_t created_ms;
    int64_t counted_sessions; /* live sessions that count against the limit */
};

struct user_row {
    struct str id; /* UUID */
    struct str tenant, name;
    enum role role;
    struct str issuer; /* issuer that vouches for the user (a token's iss); absent: ours */
    int64_t created_ms, ended_ms;
    struct str password;   /* hashed (identity/password.h); absent: cannot sign in */
    int64_t failed_logins; /* in a row */
    int64_t locked_until_ms;
};
/* After this many wrong passwords in a row, from any addresses, the user is locked. */
#define LOGIN_FREE_FAILURES 20
#define LOGIN_LOCK_MS (INT64_C(1) * 1000)
#define LOGIN_LOCK_MAX_MS (INT64_C(30) * 1000)

/* The login of a user on one device (a row of user_sessions), or a used refresh token of that
 * login. */
struct login_row {
    struct str id;     /* UUID */
    struct str family; /* id of the device's login; differs from `id` for a used token */
    struct str tenant, user_id;
    uint8_t refresh_hash[32]; /* SHA-256 of the refresh token */
    struct str device_info;   /* JSON; absent: unknown */
    struct str ip_address;
    int64_t created_ms, expires_ms, last_activity_ms;
    int64_t revoked_ms; /* also set when the token is used */
    struct str revoke_reason;
    /* Parameters of verbs, not stored. */
    struct str password;   /* OP_LOGIN_CREATE: the hash that was checked */
    uint8_t next_hash[32]; /* OP_LOGIN_ROTATE: replaces refresh_hash */
    int64_t arrived_ms;    /* OP_LOGIN_ROTATE: arrival of the request */
};
/* True while the device is signed in. */
static inline bool login_row_is_live(const struct login_row *row, int64_t now_ms)
{
    return !row->revoked_ms && row->expires_ms > now_ms && str_eq(row->id, row->family);
}

/* An API key.  The key itself is shown once and never stored. */
struct key_row {
    struct str id; /* public: the part between "hf_" and the secret */
    struct str tenant;
    struct str user_id; /* absent: the key is its own owner */
    struct str name;    /* for people */
    enum role role;
    uint8_t hash[32];  /* SHA-256 of the whole key */
    struct str scopes; /* JSON of identity/scopes.h; absent: everything */
    int64_t created_ms, expires_ms, revoked_ms, last_used_ms;
};

/* The key that seals a tenant's secrets, itself sealed by a master key. */
struct tenant_key_row {
    struct str id; /* UUIDv7: a tenant's newest key sorts last */
    struct str tenant;
    struct str master_id; /* id of the master key */
    struct str wrapped;   /* the sealed key */
    int64_t created_ms;
};

/* A secret that the configuration names as ${secret:NAME}. */
struct secret_row {
    struct str name;
    struct str sealed; /* session/sealed.h */
    int64_t created_ms, updated_ms;
};

/* The context document of one session, or of several that share it. */
struct context_row {
    struct str id; /* UUID */
    struct str tenant;
    struct str session_id; /* row id of the session that reaches it */
    struct str document;   /* JSON, unchanged */
    int64_t version;       /* from 1 */
    int64_t created_ms, updated_ms;
};

/* A tool of a server: its last seen and its approved definition.  Servers belong to the
 * configuration, not to a tenant. */
struct tool_row {
    struct str server, name;
    uint8_t digest[32];    /* of the last seen definition */
    struct str definition; /* those bytes; absent: too long to store, or not requested */
    uint8_t approved[32];  /* the approved digest; zero: never approved */
    struct str approved_definition;
    int64_t first_seen_ms, changed_ms;
    int64_t gone_ms;     /* when it was no longer listed; 0: it is listed */
    int64_t approved_ms; /* 0: never */
};

/* Statistics of requests to a server, over all starts and nodes. */
struct server_row {
    struct str name;
    int64_t calls, failures;
    int64_t last_ok_ms, last_failed_ms; /* 0: never */
    struct str last_error;              /* of the last failure */
};

/* The reply to a finished POST, for a repeated request (Idempotency-Key). */
struct idempotency_row {
    struct str tenant, owner;
    struct str key;          /* the client's, at most 255 bytes */
    uint8_t request_sha[32]; /* of method, path and body */
    int status;
    struct str headers, body; /* of the reply */
    int64_t created_ms, expires_ms;
};

/* Changes made by another node that this node must learn of at once. */
enum change_kind {
    CHANGE_SESSION_ENDED,
    CHANGE_KEY_REVOKED,
    CHANGE_LOGIN_ENDED,      /* name: the login's id */
    CHANGE_USER_CHANGED,     /* name: the user's id; password or permission to sign in */
    CHANGE_SESSION_SEALED,   /* its credentials were replaced or removed */
    CHANGE_TRANSPORT_ENDED,  /* name: hash of its id in hex digits, a blank, its owner */
    CHANGE_SESSION_TOOLSETS, /* its enabled toolsets changed */
    CHANGE_SECRET,           /* a secret was set or removed; name: the secret's name */
    CHANGE_SESSION_SETUP,    /* its setup changed */
    CHANGE_SESSION_SHARED,   /* its owner, or who else may use it, changed */
    CHANGE_CARRIER_BOUND,    /* name: key and carrier in hex digits, the owner; blanks between */
};
struct change_row {
    int64_t id;
    enum change_kind kind;
    struct str tenant, name; /* the session's row id, the key's id … */
};

/* What the audit holds of a tenant; see store/sizes.h. */
struct audit_size_row {
    struct str tenant;
    int64_t events, event_bytes;
    int64_t bodies, body_bytes;
    int64_t first_ms, last_ms; /* wall clock; first_ms is exact to the day after a removal */
    int64_t recent_event_bytes, recent_body_bytes, recent_events;
};

struct writer_row {
    int64_t number; /* set by the store, from 1 */
    struct str uuid, node;
    struct str previous; /* at start: uuid of a writer known to be gone; not stored */
    int64_t started_ms, lease_until_ms, ended_ms;
};

#endif
