/* SPDX-License-Identifier: Apache-2.0 */
/* Request bodies.  Each body has one table of members; the binder reads by it, and the OpenAPI
 * document shows it. */
#ifndef HOLDFAST_API_BODIES_H
#define HOLDFAST_API_BODIES_H

#include "api/api.h"
#include "session/setup.h"

#define SESSION_ID_MAX 255

/* The body of a create and of a PATCH. */
struct session_body {
    struct str session_id, edge_mcp_id;
    struct str client_name, client_type, client_version;
    struct str core_session_id, context_id;
    struct str metadata;         /* a JSON object */
    struct str passthrough_auth; /* checked JSON; absent: not sent, or null, which deletes it */
    struct str auth_services;    /* the services in passthrough_auth: a JSON array */
    struct str template;         /* "name" or "name@version" */
    struct session_setup setup;  /* PATCH alone: the members of session_setup_change */
    bool initialized;
    int64_t ttl_ms; /* 0: not sent */
};
struct refresh_body {
    int64_t ttl_ms;
};
struct record_body {
    struct str session_id; /* only in POST /api/v1/executions */
    struct reported_execution execution;
};
struct edge_auth_body {
    struct str edge_mcp_id;
};
struct login_body {
    struct str tenant, username, password, device_name;
};
struct refresh_login_body {
    struct str refresh_token;
};
struct context_alias_body {
    struct str context, append; /* JSON */
};

extern const struct api_body body_session, body_session_patch, body_refresh, body_record,
    body_record_alias, body_edge_auth, body_context, body_context_patch, body_context_put_alias,
    body_context_patch_alias, body_login, body_refresh_login;

/* A js_bind_read for a string of min to max characters without NUL.  js_field.data is an api_kind;
 * a nullable kind also takes null. */
bool body_read_text(const struct js_binding *b, const struct js_field *f,
                    const struct js_node *value, void *place, struct error *err);
/* The columns that a member of a PATCH writes (enum session_field); 0: none. */
unsigned body_patch_column(const struct js_field *field);
/* Parses claude-code, ide, agent or cli; the names of editors count as ide. */
must_check bool client_type_parse(struct str text, struct str *ret, struct error *err);
/* Whether a client may choose this session_id: 1 to 255 visible ASCII characters without / ? # %
 * and \, no reserved word, not "." or "..". */
bool session_id_is_fit(struct str id);
bool text_is_uuid(struct str text);
struct str uuid_lower(struct str text, struct arena *mem); /* as stored in rows */

#endif
