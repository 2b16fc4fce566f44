/* SPDX-License-Identifier: Apache-2.0 */
/* REST under /api/v1.  Tables of operations route the requests and are the source of the OpenAPI
 * document: api_table.c, and the parts that other folders add (parts.c).
 *
 *   front/ (route, identify → limit → role) → query → Idempotency-Key → body → the operation's own
 *   function → api_reply or api_refuse, once
 *
 * An api_call lives in the arena of its request.  If the client disconnects, the operation still
 * runs to its end, and the HTTP server drops the answer. */
#ifndef HOLDFAST_API_API_H
#define HOLDFAST_API_API_H

#include "api/services.h"
#include "front/front.h"
#include "json/bind.h"
#include "session/registry.h"

struct api_call;

/* The table, for routing and for the OpenAPI document. */

/* The JSON form of a value, for a js_field of kind JS_BIND_CUSTOM (js_field.data). */
struct api_kind {
    const char *type;    /* "string", "object", "integer|string" …; NULL: any type */
    const char *format;  /* "uuid", "date-time" …; or NULL */
    const char *pattern; /* or NULL */
    bool is_secret;      /* no answer shows it */
    bool is_nullable;
    bool is_duration;             /* seconds, or a text with units; the row's bounds are in ms */
    bool is_read_only;            /* refused when sent */
    const char *const *names;     /* enum; NULL-terminated, or NULL */
    const struct api_body *items; /* schema of an array's items; at least one item is required */
    int64_t max_items;
};
/* A path, query or header parameter. */
struct api_param {
    const char *name; /* NULL ends a list */
    const char *in;   /* "path", "query", "header" */
    const char *type; /* "string", "integer", "boolean" */
    bool is_required;
    int64_t min, max; /* numbers; lengths of strings; max 0: unbounded */
    const char *default_text;
    const char *const *names; /* enum, or NULL */
    const char *help;
    const char *example; /* JSON; or NULL */
    bool has_slashes;    /* in a path: slashes in the value are not encoded */
};
/* A request's body.  Members are bound by `fields` (min and max of strings are lengths in
 * characters). */
struct api_body {
    const char *name;              /* of its schema */
    const struct js_field *fields; /* NULL: any JSON object */
    bool is_optional;
    bool unknown_ok;  /* members not listed are ignored; else refused */
    bool takes_null;  /* null clears a member */
    bool or_array;    /* or an array of 1 to AUDIT_REPORTED_MAX such objects */
    const char *type; /* a second media type beside application/json; or NULL */
};
/* A member of an answer. */
struct api_member {
    const char *name; /* NULL ends a list */
    const char *type; /* "string", "integer", "number", "boolean", "object", "array", NULL: any */
    const char *ref;  /* name of the schema of the member, or of an array's items; or NULL */
    bool is_required;
    const char *format;       /* of an array without ref: type of its items; NULL: string */
    const char *const *names; /* enum; NULL-terminated */
    const char *help;
};
enum api_header { API_ETAG = 1, API_LINK = 2 };
struct api_schema {
    const char *name;
    const struct api_member *members; /* NULL: any object */
    const char *help;
    unsigned headers; /* enum api_header: those of every successful answer with this body */
};
/* The tag of all operations whose pattern contains a text. */
struct api_tag {
    const char *in_pattern, *name;
    const char *help; /* NULL: another row has it */
};
/* The value of a member, in examples of requests and answers. */
struct api_example {
    const char *name, *json;
};
struct api_answer {
    int status;         /* 0 ends a list */
    const char *schema; /* NULL: no body */
    const char *help;
    /* Media types of a body that is not JSON; NULL-terminated.  NULL: JSON, as in the schema. */
    const char *const *types;
};
enum api_access {
    API_READ,  /* every role; admin and auditor see the whole tenant */
    API_WRITE, /* every role but auditor */
    API_OPEN,  /* no authentication */
    API_AUDIT, /* admin and auditor */
    API_ADMIN, /* admin */
    API_LOCAL, /* the local admin: on the unix socket, without a credential */
};
struct api_operation {
    const char *method, *pattern, *id; /* "POST", "/api/v1/sessions", "createSession" */
    enum api_access access;
    bool is_once;     /* takes an Idempotency-Key */
    bool is_review;   /* for people, and keys with the scope `review` */
    bool is_sessions; /* 404 when sessions are switched off for the tenant */
    void (*run)(struct api_call *c);
    const char *summary;
    const struct api_param *params;
    const struct api_body *body;      /* NULL: no body is read */
    const char *takes;                /* media type of a body that is not JSON; NULL: none */
    const struct api_answer *answers; /* in addition to api_common_answers */
};
/* A part of the interface that another folder adds. */
struct js_writer;
struct api_part {
    const struct api_operation *operations; /* a NULL id ends the list */
    const char *after;                      /* id of the operation that they follow */
    const struct api_schema *schemas;       /* of answers; a NULL name ends the list; or NULL */
    const char *after_schema;               /* name of the schema that they follow */
    const struct api_tag *tag;              /* of the operations; NULL: a tag of this folder */
    const char *after_tag;                  /* name of the tag that it follows */
    const struct api_example *examples;     /* used for every part; a NULL name ends the list */
    /* Writes members of the answer of /readyz; or NULL. */
    void (*write_ready)(struct api_services *sv, struct js_writer *w);
    const struct api_member *ready_members; /* what it writes; or NULL */
};
/* The part stays in use until the process ends.  Called before api_start(); a second call with the
 * same part changes nothing. */
void api_add(const struct api_part *part);
/* Every operation and every schema of an answer, in the order of the OpenAPI document. */
const struct api_operation *const *api_operations(size_t *ret_n);
const struct api_schema *const *api_schemas(size_t *ret_n);
const struct api_part *const *api_parts(size_t *ret_n);
void api_write_ready(struct api_services *sv, struct js_writer *w);
/* The rows of this folder (api_table.c). */
extern const struct api_operation api_own_operations[]; /* a NULL id ends the list */
extern const struct api_schema api_own_schemas[];       /* a NULL name ends the list */
/* Answers that any operation may give. */
extern const struct api_answer api_common_answers[];

/* One call. */
struct api_call {
    struct api_services *sv;
    struct http_request *http;
    const struct api_operation *op;
    struct route_match match;
    struct arena *mem; /* the request's */
    struct caller caller;
    struct config *config; /* that of the caller */
    struct principal who;  /* that of the caller, which may see the whole tenant */
    struct str request_id;
    struct js_doc doc; /* the body; doc.n == 0: no body */
    struct registry_call reg;
    struct idempotency_row once; /* the answer as it is stored under the Idempotency-Key */
    bool is_once;                /* the request has an Idempotency-Key */
    bool is_busy;                /* busy_key is taken in the registry */
    struct str busy_key;
    void *args; /* state of the operation */
};

/* Whether this role may use the operation. */
bool api_is_for(const struct api_operation *op, enum role role);

/* Each of these answers the call, which must not be used afterwards. */
void api_reply(struct api_call *c, int status, struct str headers, struct str body);
/* An answer in pieces, of any type, status 200.  From begin on, `c` lives until end or abort; when
 * the client leaves, c->http->on_abort is called, and the operation then calls api_stream_abort().
 * Write returns false when more than `max_queue` bytes wait, or the client is gone. */
void api_stream_begin(struct api_call *c, const char *type, struct str headers, size_t max_queue);
must_check bool api_stream_write(struct api_call *c, struct str bytes);
void api_stream_end(struct api_call *c);
void api_stream_abort(struct api_call *c); /* the client notices that the answer is cut off */
/* problem.c: a problem with the HTTP status of `code`; the formatted text is the sentence shown. */
void api_refuse(struct api_call *c, enum err_code code, const char *fmt, ...) printf_like(3, 4);
/* The same with header lines; `error` is the short text of the `error` member. */
void api_problem(struct api_call *c, enum err_code code, const char *error, const char *detail,
                 struct str headers);
/* The body of a problem, in mem. */
struct str problem_body(struct arena *mem, enum err_code code, const char *error,
                        const char *detail, struct str request_id);
/* The problem for c->reg.result, which is not REGISTRY_OK. */
void api_refuse_result(struct api_call *c);

/* Answers 200 with a stream of this type.  The call is over and must not be used afterwards; the
 * caller writes to the returned request and ends it (http/server.h).  A stop does not wait for
 * it.  The client must still be connected. */
struct http_request *api_stream(struct api_call *c, const char *type, struct str headers,
                                size_t max_queue);

/* The same with status 101: the connection goes on in another protocol (http_upgrade()).  NULL: it
 * cannot, and the call must still be answered. */
struct http_request *api_upgrade(struct api_call *c, struct str headers, size_t max_queue);

/* Prepares the answer of a change before the change is made, so that one commit stores both.
 * api_reply_prepared() sends the answer after the commit. */
void api_prepare(struct api_call *c, int status, struct str headers, struct str body);
void api_reply_prepared(struct api_call *c, struct str more_headers);

/* Reading a request. */
/* Binds `object` to `dest`; false: the refusal was sent. */
must_check bool api_bind(struct api_call *c, const struct js_node *object,
                         const struct api_body *body, void *dest, void *user,
                         void (*seen)(const struct js_binding *b, const struct js_field *field,
                                      const struct js_node *key));
/* A name percent-encoded for a path. */
struct str api_in_path(struct api_call *c, struct str name);
/* The decoded value of ?name=; absent when the query does not have it.  false: the refusal was
 * sent. */
must_check bool api_query(struct api_call *c, const char *name, struct str *ret);
must_check bool api_query_number(struct api_call *c, const char *name, int64_t min, int64_t max,
                                 int64_t if_absent, int64_t *ret);
/* A time, or a duration before now; *ret_ms is 0 without the parameter.  false: the refusal was
 * sent. */
must_check bool api_query_time(struct api_call *c, const char *name, int64_t *ret_ms);
/* Sets up c->reg for the session in the path (param 0). */
void api_session(struct api_call *c, void (*done)(struct registry_call *reg));
static inline struct api_call *api_of(struct registry_call *reg)
{
    return reg->user;
}

/* The tenant's settings. */
int64_t api_max_sessions(const struct api_call *c);
int64_t api_default_ttl_ms(const struct api_call *c);
int64_t api_idle_ms(const struct api_call *c);
bool api_has_sessions(const struct api_call *c);

/* sessions.c */
void api_create_session(struct api_call *c);
void api_list_sessions(struct api_call *c);
void api_list_active_sessions(struct api_call *c);
void api_get_session(struct api_call *c);
void api_get_session_by_id(struct api_call *c);
void api_patch_session(struct api_call *c);
void api_end_session(struct api_call *c);
void api_session_metrics(struct api_call *c);
/* Reads ?status= as 1 << enum session_status, 0 for all. */
must_check bool api_query_statuses(struct api_call *c, unsigned if_absent, unsigned *ret);
/* session_details.c */
void api_list_session_details(struct api_call *c);
void api_session_details(struct api_call *c);
/* session_verbs.c */
void api_use_session(struct api_call *c);
void api_validate_session(struct api_call *c);
void api_refresh_session(struct api_call *c);
void api_edge_auth(struct api_call *c);
/* executions.c */
void api_record(struct api_call *c);
void api_record_alias(struct api_call *c);
void api_list_executions(struct api_call *c);
/* logins.c */
void api_login(struct api_call *c);
void api_refresh_login(struct api_call *c);
void api_logout(struct api_call *c);
void api_list_logins(struct api_call *c);
void api_end_login(struct api_call *c);
void api_end_logins(struct api_call *c);
/* keys.c */
void api_create_key(struct api_call *c);
void api_list_keys(struct api_call *c);
void api_get_key(struct api_call *c);
void api_revoke_key(struct api_call *c);
void api_put_secret(struct api_call *c);
void api_list_secrets(struct api_call *c);
void api_remove_secret(struct api_call *c);
/* users_list.c */
void api_list_users(struct api_call *c);
/* users.c */
void api_create_user(struct api_call *c);
void api_get_user(struct api_call *c);
void api_patch_user(struct api_call *c);
void api_list_user_logins(struct api_call *c);
void api_end_user_logins(struct api_call *c);
void api_end_user_login(struct api_call *c);
/* servers.c */
void api_list_servers(struct api_call *c);
void api_get_server(struct api_call *c);
void api_list_tools(struct api_call *c);
void api_list_server_tools(struct api_call *c);
void api_diff_tool(struct api_call *c);
void api_approve_tools(struct api_call *c);
/* servers_operate.c */
void api_restart_server(struct api_call *c);
void api_list_server_logs(struct api_call *c);
/* audit.c */
void api_list_events(struct api_call *c);
void api_list_audit_executions(struct api_call *c);
void api_get_audit_execution(struct api_call *c);
/* audit_verify.c */
void api_verify_audit(struct api_call *c);
void api_get_audit_stats(struct api_call *c);
/* system.c */
void api_get_system(struct api_call *c);
/* openapi.c */
void api_get_openapi(struct api_call *c);
/* context.c */
void api_get_context(struct api_call *c);
void api_put_context(struct api_call *c);
void api_patch_context(struct api_call *c);
void api_get_context_alias(struct api_call *c);
void api_put_context_alias(struct api_call *c);
void api_patch_context_alias(struct api_call *c);

/* Adds the routes of the operations to sv->front; called before a listener opens. */
void api_add_routes(struct api_services *sv);

#endif
