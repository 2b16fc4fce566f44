/* SPDX-License-Identifier: Apache-2.0 */
/* The rows the store keeps, as plain structs of spans.  Everything above fills or reads these; only
 * backends know SQL.  An absent str is NULL in the database.  Times are
 * milliseconds of clock_life_ms(), those of events of the wall clock; 0 = never. */
#ifndef HOLDFAST_STORE_ROWS_H
#define HOLDFAST_STORE_ROWS_H

#include "base/principal.h"
#include "base/str.h"

/* Event ids are our own 64-bit numbers: writer number << 40 | count of that writer.  Shown as
 * "3.1234". */
#define EVENT_WRITER_SHIFT 40
#define EVENT_COUNT_MASK ((INT64_C(1) << EVENT_WRITER_SHIFT) - 1)

enum session_status { SESSION_ACTIVE, SESSION_IDLE, SESSION_EXPIRED, SESSION_TERMINATED };
/* How the session came to be; decides whether it counts against the tenant's limit. */
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

/* However often a session is used, it ends this long after its creation. */
#define SESSION_LIFE_MAX_MS (INT64_C(30) * 24 * 3600 * 1000)
/* An end so near that it may pass before events are folded, however slowly that goes. */
#define SESSION_END_NEAR_MS (INT64_C(60) * 1000)
/* A transport id unused for this long is dead. */
#define TRANSPORT_IDLE_MS (INT64_C(24) * 3600 * 1000)

struct session_row {
    struct str id;     /* UUIDv7 text: the row's own name */
    struct str handle; /* "ses_…" or a REST caller's session_id; unique per tenant */
    struct str tenant, owner;
    struct str user_id;
    struct str edge_mcp_id; /* never absent */
    struct str client_name, client_type, client_version;
    enum session_status status;
    enum session_origin origin;
    bool initialized;
    bool provisional;   /* stored, short-lived, uncounted */
    bool counted;       /* against the tenant's limit */
    struct str carrier; /* what named it: "header", "meta:session_id", "client-id", "derived" … */
    struct str carrier_key; /* for keyed and derived sessions: (owner, carrier, carrier_key) is
                               unique while live */
    struct str core_session_id;
    struct str connection_metadata; /* JSON */
    struct str context_id;
    struct str sealed_auth;    /* credentials for other services, as session/sealed.h has them */
    struct str sealed_context; /* what its client told it at its begin, likewise; absent: nothing */
    struct str toolsets; /* keys of those that are enabled in it, a comma between; absent: none */
    int64_t created_ms, last_activity_ms, expires_ms, terminated_ms;
    int64_t ttl_ms; /* explicit ttl; 0 = sliding: use moves expires_ms along by as much as
                     * last_activity_ms moved, up to created_ms + SESSION_LIFE_MAX_MS */
    struct str termination_reason;
    int64_t tool_count, tokens_used;
    int64_t version; /* from 1, bumped by every verb that writes the row, not by the fold, nor when
                      * the reaper writes down that it is idle */
};
/* Active or idle, and not past its end. */
bool session_row_is_live(const struct session_row *row, int64_t now_ms);
/* Whether it counts against its tenant's limit now.  A session that was counted only because its
 * handle came back stops counting after this long without use, and counts again when it is used. */
#define SESSION_PROMOTED_IDLE_MS (INT64_C(30) * 60 * 1000)
bool session_row_counts(const struct session_row *row, int64_t now_ms);
/* Sets a live status past its end to expired, as every reader must see it. */
void session_row_apply_expiry(struct session_row *row, int64_t now_ms);
/* The same, and sets active or idle by the last use, whatever was stored.  For rows that are shown.
 * */
void session_row_apply_idle(struct session_row *row, int64_t now_ms, int64_t idle_ms);

struct transport_row {
    uint8_t id_hash[32]; /* SHA-256 of the Mcp-Session-Id */
    struct str tenant, owner;
    struct str endpoint; /* "/mcp/files" */
    struct str protocol_version;
    struct str initialize_params; /* the client's bytes, as they came */
    struct str session_id;        /* linked session (row id), absent until the first call */
    int64_t created_ms, last_used_ms;
    int64_t ended_ms; /* DELETE */
};

/* (session, server) → who served it last.  A row whose writer or child is gone means state was
 * lost. */
struct link_row {
    struct str session_id, server;
    int64_t writer;       /* writer number that holds the live end, 0 when it ended */
    struct str remote_id; /* of an HTTP server's session: link_resume() of upstream/upstream.h */
    int64_t opened_ms, ended_ms;
    struct str end_reason;
};

/* A result whose reply did not reach its client, for the same session asking the same again. */
struct undelivered_row {
    int64_t id; /* chosen by whoever puts it, never used before */
    struct str tenant, owner, session_id;
    uint8_t digest[32]; /* of what was asked */
    int64_t exec;       /* the execution it came from; 0: not audited */
    int64_t created_ms, expires_ms;
    struct str sealed; /* absent in lists */
    int64_t sealed_len;
};

enum event_kind {
    EVENT_INTENT,
    EVENT_OUTCOME,
    EVENT_NOTE,    /* executions */
    EVENT_ANCHOR,  /* chains all heads */
    EVENT_WRITER,  /* a start or stop */
    EVENT_SESSION, /* created, ended */
    EVENT_SYSTEM,
    /* An execution that somebody told us of (REST): intent and outcome in one, exec is its own id,
     * the body is {"arguments":…,"result":…}, each member only where it was told. */
    EVENT_RECORD,
};

/* One append-only record.  The MAC covers every field but `body` (whose digest it covers), so a
 * body may be deleted later without breaking the chain. */
struct event_row {
    int64_t id; /* see EVENT_WRITER_SHIFT; set by the write lane */
    struct str tenant;
    int64_t seq; /* per (tenant, writer), from 1; set by the write lane */
    int64_t at_ms;
    enum event_kind kind;
    int64_t exec;   /* the intent's id, on intent (own id), outcome and note; else 0 */
    int64_t parent; /* exec of which this is a retry, or whose result it hands out; else 0 */
    struct str owner;
    struct str session_id; /* row id */
    struct str transport;  /* 8 hex digits of the hash, for people */
    struct str carrier;
    struct str server, method, tool;
    struct str era; /* "2025-11-25>2026-07-28": client side > upstream side */
    /* ok tool_error error timeout cancelled refused upstream_lost indeterminate; on a note also
     * redelivered: nothing ran, the result of `parent` was handed out */
    struct str outcome;
    struct str error; /* one sentence */
    int64_t duration_us;
    int64_t tokens;         /* used, as told by whoever recorded it; ≥ 0 */
    struct str tool_id;     /* UUID of a tool_configuration, as told; absent otherwise */
    int64_t body_len;       /* of the original bytes */
    uint8_t body_sha[32];   /* of the original bytes; zero when body_len < 0 (no body) */
    struct str body;        /* redacted and cut; absent when not kept */
    uint8_t stored_sha[32]; /* of `body` as stored; zero when absent */
    uint8_t mac[32];
    struct str record; /* the event as bytes (store/record.h) while it is being appended, from
                        * whoever sealed it; absent: the store makes them */
};

/* Intent and outcome joined, or a record by itself: what session_tool_executions shows. */
struct execution_row {
    int64_t exec; /* event id of the intent or record; shown as a UUID, see execution_uuid() */
    struct str session_id; /* row id */
    struct str server;     /* absent on records */
    struct str tool_name, tool_id;
    struct str arguments, result; /* JSON as kept (redacted, cut); absent when not kept or not
                                   * asked for */
    struct str outcome;           /* "open" while there is none */
    struct str error;
    int64_t duration_ms; /* -1: not known */
    int64_t tokens;      /* -1: none told */
    int64_t executed_ms;
};
#define EXECUTION_UUID_TEXT 37
/* The execution's name outside: a UUID (version 8) that holds the event id and nothing else. */
void execution_uuid(int64_t exec, char ret[EXECUTION_UUID_TEXT]);
must_check bool execution_uuid_parse(struct str uuid, int64_t *ret_exec);

#define TOOL_UUID_TEXT 37
/* The id of a tool's row in tool_configurations: a UUID (version 8) made from what it names, so the
 * same in every store. */
void tool_uuid(struct str tenant, struct str server, struct str tool, char ret[TOOL_UUID_TEXT]);

struct tenant_row {
    struct str id; /* its name: what a principal's tenant is */
    int64_t created_ms;
    int64_t counted_sessions; /* live ones that count against the limit */
};

struct user_row {
    struct str id; /* UUID */
    struct str tenant, name;
    enum role role;
    struct str issuer; /* who vouches for it (a token's iss); absent: ours */
    int64_t created_ms, ended_ms;
    struct str password;   /* hashed (identity/password.h); absent: none, no signing in */
    int64_t failed_logins; /* in a row */
    int64_t locked_until_ms;
};
/* After so many wrong passwords in a row, wherever they came from, a user is locked: twice as long
 * each time, but never for long, or anybody could keep a user out (identity/logins.h). */
#define LOGIN_FREE_FAILURES 20
#define LOGIN_LOCK_MS (INT64_C(1) * 1000)
#define LOGIN_LOCK_MAX_MS (INT64_C(30) * 1000)

/* A user signed in on one device (a row of user_sessions), or a refresh token that it used up. */
struct login_row {
    struct str id;     /* UUID */
    struct str family; /* the device's id; another than `id` for a token that is used up */
    struct str tenant, user_id;
    uint8_t refresh_hash[32]; /* SHA-256 of the refresh token */
    struct str device_info;   /* JSON; absent: nothing is known */
    struct str ip_address;
    int64_t created_ms, expires_ms, last_activity_ms;
    int64_t revoked_ms; /* or used up */
    struct str revoke_reason;
    /* Of verbs only, not kept. */
    struct str password;   /* OP_LOGIN_CREATE: the hash that was checked */
    uint8_t next_hash[32]; /* OP_LOGIN_ROTATE: in the place of refresh_hash */
    int64_t arrived_ms;    /* OP_LOGIN_ROTATE: when the request came */
};
/* Still signed in? */
static inline bool login_row_is_live(const struct login_row *row, int64_t now_ms)
{
    return !row->revoked_ms && row->expires_ms > now_ms && str_eq(row->id, row->family);
}

/* An API key.  The key itself is shown once and never kept. */
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

/* What seals a tenant's secrets, itself sealed by a master key. */
struct tenant_key_row {
    struct str id; /* UUIDv7: the newest of a tenant is its last */
    struct str tenant;
    struct str master_id; /* which master key */
    struct str wrapped;   /* bytes */
    int64_t created_ms;
};

/* The context document of one session, or of several that share it. */
struct context_row {
    struct str id; /* UUID */
    struct str tenant;
    struct str session_id; /* row id of the session it is reached by */
    struct str document;   /* JSON, as it came */
    int64_t version;       /* from 1 */
    int64_t created_ms, updated_ms;
};

/* A tool of a server: what it was last seen to be, and what of it stands approved.  Servers are the
 * configuration's, not a tenant's. */
struct tool_row {
    struct str server, name;
    uint8_t digest[32];    /* of its definition, as last seen */
    struct str definition; /* those bytes; absent: too many to keep, or not asked for */
    uint8_t approved[32];  /* the digest that stands approved; zero: none ever was */
    struct str approved_definition;
    int64_t first_seen_ms, changed_ms;
    int64_t gone_ms;     /* not listed any more; 0: it is there */
    int64_t approved_ms; /* 0: never */
};

/* How requests to a server went, over all starts and nodes. */
struct server_row {
    struct str name;
    int64_t calls, failures;
    int64_t last_ok_ms, last_failed_ms; /* 0: never */
    struct str last_error;              /* of the last failure */
};

/* A document of a folder.  Folders are the nodes' own, not a tenant's: who may reach one is decided
 * above the store, and nodes that name the same folder mean the same files. */
struct document_row {
    struct str id;           /* UUIDv7; stays when the document moves */
    struct str folder, path; /* UTF-8 */
    int64_t revision;        /* the newest, from 1 */
    uint8_t sha256[32];      /* of its bytes */
    int64_t created_ms, changed_ms;
    int64_t ended_ms; /* the file is gone; 0: it is there */
    /* Of OP_DOCUMENT_MOVE only, not kept. */
    struct str new_path;
};

#define DOCUMENT_ID_TEXT 37
/* No revision has more bytes. */
#define DOCUMENT_CONTENT_MAX (5u << 20)
/* What a document was at some time, and how that came to be. */
#define HISTORY_ROW_BYTES 256
struct revision_row {
    struct str document_id;
    int64_t revision;
    int64_t at_ms;
    struct str author; /* absent: not known */
    struct str kind; /* outside create suggest comment accept reject write move restore recovered */
    struct str reason; /* absent: none was given */
    struct str path;   /* the one it had then */
    uint8_t sha256[32];
    int64_t size;
    struct str content; /* bytes, never looked at; absent in lists */
    /* For OP_DOCUMENT_REVISE, so that a small change takes little room: the first `prefix` and the
     * last `suffix` bytes are those of the text with the digest `follows`.  0 and 0: not known. */
    size_t prefix, suffix;
    uint8_t follows[32];
    /* Likewise: what the history of the document may take, each revision counted with
     * HISTORY_ROW_BYTES; 0: as much as it likes.  The oldest revisions go, the newest stays. */
    int64_t history_max;
    /* What OP_DOCUMENT_REVISE fills document_id with: a copy of the row needs its own. */
    char id_text[DOCUMENT_ID_TEXT];
};

/* Which lines of a document a session has seen, and at which revision. */
struct document_read_row {
    struct str session_id; /* row id */
    struct str folder, path;
    int64_t revision;
    int64_t from_line, to_line; /* both among them */
    int64_t at_ms;
};
/* Kept of one session and one document. */
#define DOCUMENT_READS_MAX 64

/* A finished POST that may be asked for again (Idempotency-Key). */
struct idempotency_row {
    struct str tenant, owner;
    struct str key;          /* the client's, at most 255 bytes */
    uint8_t request_sha[32]; /* of method, path and body */
    int status;
    struct str headers, body; /* of the answer */
    int64_t created_ms, expires_ms;
};

/* What another node did that this one must know of at once. */
enum change_kind {
    CHANGE_SESSION_ENDED,
    CHANGE_KEY_REVOKED,
    CHANGE_LOGIN_ENDED,      /* name: the login's id */
    CHANGE_USER_CHANGED,     /* name: the user's id; its password or whether it may sign in */
    CHANGE_SESSION_SEALED,   /* it has other credentials, or none */
    CHANGE_TRANSPORT_ENDED,  /* name: the hash of its id in hex digits, a blank, its owner */
    CHANGE_SESSION_TOOLSETS, /* others are enabled in it */
};
struct change_row {
    int64_t id;
    enum change_kind kind;
    struct str tenant, name; /* the session's row id, the key's id … */
};

struct writer_row {
    int64_t number; /* given by the store, from 1 */
    struct str uuid, node;
    struct str previous; /* at its start: uuid of a writer that is known to be gone; not kept */
    int64_t started_ms, lease_until_ms, ended_ms;
};

#endif
