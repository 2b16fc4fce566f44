/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the operations: parameters, bodies, answers. */
#include "session/share_api/share_api.h"

#include "api/bodies.h"
#include "base/clock.h"
#include "store/store.h"

#include <stddef.h>

static const struct api_kind kind_text = {.type = "string"},
                             kind_duration = {.type = "integer|string",
                                              .is_duration = true,
                                              .pattern =
                                                  "^(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?"
                                                  "([0-9]+ms)?$|^[0-9]+$"},
                             kind_grantee = {.type = "object|string"};

static bool read_duration(const struct js_binding *b, const struct js_field *f,
                          const struct js_node *value, void *place, struct error *err)
{
    struct str text = value->type == JS_STRING   ? js_text(b->doc, value, b->mem)
                      : value->type == JS_NUMBER ? js_raw(b->doc, value)
                                                 : STR_NONE;
    int64_t ms;

    if (!text.p || !clock_parse_duration(text, &ms) || ms < f->min || ms > f->max)
        return error_set(err, ERR_BAD_DURATION,
                         "invalid duration: \"%s\" is seconds, or a text such as \"1h\", more than "
                         "0 and at most 30 days",
                         f->name);
    *(int64_t *)place = ms;
    return true;
}

static bool is_only(const struct js_doc *doc, const struct js_node *object,
                    const struct js_node *value)
{
    return js_value_of(js_first(doc, object)) == value && !js_next(doc, object, value);
}

/* "code", {"user": NAME} or {"client": NAME}. */
static bool read_grantee(const struct js_binding *b, const struct js_field *f unused_arg,
                         const struct js_node *value, void *place, struct error *err)
{
    struct share_wish *wish = place;

    if (value->type == JS_STRING && str_eq(js_text(b->doc, value, b->mem), STR("code")))
        return true;
    const struct js_node *user = js_get(b->doc, value, STR("user")),
                         *client = js_get(b->doc, value, STR("client")),
                         *named = user ? user : client;
    struct str name = js_type_is(named, JS_STRING) ? js_text(b->doc, named, b->mem) : STR_NONE;
    if (value->type != JS_OBJECT || !user == !client || !is_only(b->doc, value, named) || !name.n ||
        name.n > SHARE_GRANTEE_MAX)
        return js_bind_fault(b, value, err,
                             "\"grantee\" is \"code\", {\"user\": NAME} or {\"client\": NAME}, the "
                             "name or id of a user or of a key");
    if (user)
        wish->user = name;
    else
        wish->client = name;
    return true;
}

static const struct js_field share_fields[] = {
    {.name = "grantee",
     .kind = JS_BIND_CUSTOM,
     .read = read_grantee,
     .data = &kind_grantee,
     .offset = offsetof(struct share_body, wish),
     .default_text = "code",
     .help = "Who gets the share: code makes a one-use code, {\"user\": NAME} and {\"client\": "
             "NAME} name a user or a key of the tenant by name or id."},
    {.name = "may",
     .kind = JS_BIND_ENUM,
     .names = share_may_names,
     .offset = offsetof(struct share_body, wish.may),
     .default_text = "use",
     .help = "read: see the session, its calls and context. use: also call tools in it. hand_over: "
             "become its owner by joining."},
    {.name = "expires",
     .kind = JS_BIND_CUSTOM,
     .read = read_duration,
     .data = &kind_duration,
     .min = 1,
     .max = SESSION_LIFE_MAX_MS,
     .offset = offsetof(struct share_body, wish.expires_ms),
     .help = "When the code ends (default: 10 minutes), or the access of a user "
             "or client (default: with the session): seconds, or a duration such as \"1h30m\"."},
    {.name = "access",
     .kind = JS_BIND_CUSTOM,
     .read = read_duration,
     .data = &kind_duration,
     .min = 1,
     .max = SESSION_LIFE_MAX_MS,
     .offset = offsetof(struct share_body, wish.access_ms),
     .help = "How long the access by a code lasts once it is used (default: with the session)."},
    {0},
};
const struct api_body body_share = {
    .name = "SessionShareCreate", .fields = share_fields, .is_optional = true};

#define FIELD(NAME, MEMBER, MAX, HELP)                                                             \
    {                                                                                              \
        .name = (NAME), .kind = JS_BIND_CUSTOM, .read = body_read_text, .data = &kind_text,        \
        .min = 1, .max = (MAX), .offset = offsetof(struct join_body, MEMBER), .help = (HELP)       \
    }
static const struct js_field join_fields[] = {
    FIELD("code", code, 200, "The code. Either this or session is required."),
    FIELD("session", session, 255,
          "The session_id of a session that is shared with the caller by name: joining one that is "
          "handed over makes "
          "the caller its owner."),
    FIELD("client_name", client_name, 255, "Name of the client that joins, for people."),
    {.name = "former_owner",
     .kind = JS_BIND_ENUM,
     .names = share_former_names,
     .offset = offsetof(struct join_body, former_owner),
     .default_text = "nothing",
     .help = "When the session is handed over: what its former owner may do from then on."},
    {0},
};
const struct api_body body_join = {.name = "SessionJoin", .fields = join_fields};

#define TENANT                                                                                     \
    {                                                                                              \
        .name = "tenant", .in = "query", .type = "string", .min = 1, .max = 64,                    \
        .help = "The caller's tenant. On the unix socket: any tenant (default: `default`)."        \
    }
#define SESSION                                                                                    \
    {                                                                                              \
        .name = "id", .in = "path", .type = "string", .is_required = true, .min = 1, .max = 255,   \
        .help = "The session_id.", .example = "\"session-1\""                                      \
    }
static const struct api_param params[] = {SESSION, TENANT, {0}};
static const struct api_param end_params[] = {
    SESSION,
    {.name = "share",
     .in = "path",
     .type = "string",
     .is_required = true,
     .min = 1,
     .max = 255,
     .help = "The share's id."},
    TENANT,
    {0},
};
static const struct api_param join_params[] = {TENANT, {0}};

static const struct api_answer create_answers[] = {
    {201, "SessionShareMade", "The share, and its code, which is shown only now."},
    {404, "Problem", "The caller has no such session, or there is no such user or key."},
    {409, "Problem", "The session is over."},
    {413, "Problem", "The body is too large."},
    {415, "Problem", "The body is not JSON."},
    {429, "Problem", "The session has as many live shares as it may, or another limit is reached."},
    {0},
};
static const struct api_answer list_answers[] = {
    {200, "SessionShareList", "Live shares and the newest of the others, oldest first."},
    {404, "Problem", "The caller has no such session."},
    {0},
};
static const struct api_answer end_answers[] = {
    {200, "SessionShare", "The share, which ends at the next call, on every node."},
    {404, "Problem", "The caller has no such session, or it has no such live share."},
    {0},
};
static const struct api_answer join_answers[] = {
    {200, "SessionJoined", "The session that the caller may use now."},
    {403, "Problem", "The code has expired or was revoked, or the role does not permit this."},
    {404, "Problem", "The code is not known, or no such session is shared with the caller."},
    {409, "Problem", "The code was used before, or the session is over."},
    {413, "Problem", "The body is too large."},
    {415, "Problem", "The body is not JSON."},
    {429, "Problem", "Too many codes were wrong, or another limit is reached."},
    {0},
};

static const struct api_answer fork_answers[] = {
    {201, "Session", "The copy, a session of the caller."},
    {404, "Problem", "The caller has no such session, and none is shared with the caller."},
    {429, "Problem",
     "The tenant has as many live sessions as it may, or another limit is reached."},
    {0},
};

static const char *const states[] = {"open", "live", "expired", "revoked", "handed_over", NULL};
#define SHARE_MEMBERS                                                                              \
    {"id", "string", NULL, true, "uuid", NULL, "Id of the share."},                                \
        {"status", "string", NULL, true, NULL, states, "open: a code that nobody has used yet."},  \
        {"may", "string", NULL, true, NULL, share_may_names, "What the share permits."},           \
        {"by_code", "boolean", NULL, true, NULL, NULL, "The share was made as a code."},           \
        {"grantee",                                                                                \
         "string",                                                                                 \
         NULL,                                                                                     \
         false,                                                                                    \
         NULL,                                                                                     \
         NULL,                                                                                     \
         "Owner that has the share; absent while nobody has used the code."},                      \
        {"made_by", "string", NULL, true, NULL, NULL, "Owner that made the share."},               \
        {"created_at", "string", NULL, true, "date-time", NULL, "Time of creation."},              \
        {"expires_at",                                                                             \
         "string",                                                                                 \
         NULL,                                                                                     \
         false,                                                                                    \
         "date-time",                                                                              \
         NULL,                                                                                     \
         "End of the code until it is used, then of the access; absent: with the session."},       \
        {"joined_at", "string", NULL, false, "date-time", NULL, "Time of the last join."},         \
        {"joined_client",                                                                          \
         "string",                                                                                 \
         NULL,                                                                                     \
         false,                                                                                    \
         NULL,                                                                                     \
         NULL,                                                                                     \
         "Name that the client gave itself when it joined."},                                      \
    {                                                                                              \
        "ended_at", "string", NULL, false, "date-time", NULL, "Time at which the share was ended." \
    }
static const struct api_member share_members[] = {SHARE_MEMBERS, {0}};
static const struct api_member made_members[] = {
    SHARE_MEMBERS,
    {"code", "string", NULL, false, NULL, NULL, "The code, if one was made. Shown only now."},
    {0},
};
static const struct api_member list_members[] = {
    {"shares", "array", "SessionShare", true, NULL, NULL, "The shares."},
    {"count", "integer", NULL, true, NULL, NULL, "Number of rows."},
    {0},
};
static const struct api_member joined_members[] = {
    {"share", "object", "SessionShare", true, NULL, NULL, "The share that was joined with."},
    {"session", "object", "Session", true, NULL, NULL, "The session."},
    {"servers", "array", NULL, true, NULL, NULL, "Servers that the session has used."},
    {0},
};
static const struct api_schema schemas[] = {
    {"SessionShare", share_members, "A share of a session."},
    {"SessionShareMade", made_members, "A new share of a session."},
    {"SessionShareList", list_members, "The shares of a session."},
    {"SessionJoined", joined_members, "A session that was joined."},
    {0},
};

#define SESSIONS "/api/v1/sessions"
#define OP(METHOD, PATTERN, ID, ACCESS, RUN, SUMMARY)                                              \
    .method = (METHOD), .pattern = (PATTERN), .id = (ID), .access = (ACCESS), .run = (RUN),        \
    .summary = (SUMMARY), .is_sessions = true

static const struct api_operation operations[] = {
    {OP("POST", SESSIONS "/{id}/shares", "shareSession", API_WRITE, api_create_share,
        "Lets another client, or another user of the tenant, go on in a session."),
     .params = params, .body = &body_share, .answers = create_answers},
    {OP("GET", SESSIONS "/{id}/shares", "listSessionShares", API_READ, api_list_shares,
        "Lists the shares of a session."),
     .params = params, .answers = list_answers},
    {OP("DELETE", SESSIONS "/{id}/shares/{share}", "revokeSessionShare", API_WRITE, api_end_share,
        "Revokes a share."),
     .params = end_params, .answers = end_answers},
    {OP("POST", SESSIONS "/join", "joinSession", API_WRITE, api_join_session,
        "Joins a session with a code, or one that is shared with the caller."),
     .params = join_params, .body = &body_join, .answers = join_answers},
    {OP("POST", SESSIONS "/{id}/fork", "forkSession", API_WRITE, api_fork_session,
        "Copies what a session remembers into a new session of the caller."),
     .params = params, .answers = fork_answers},
    {0},
};

static const struct api_example examples[] = {
    {"grantee", "\"code\""},
    {"may", "\"use\""},
    {"expires", "\"10m\""},
    {"access", "\"8h\""},
    {"code", "\"hf-share-abcdefghijklmnopqrstuvwxyz\""},
    {0},
};

const struct api_part share_api = {
    .operations = operations,
    .after = "refreshSession",
    .schemas = schemas,
    .after_schema = "SessionList",
    .examples = examples,
};
