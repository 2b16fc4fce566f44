/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, lists and revokes shares, and joins with them.  session/sharing.h does the work. */
#include "session/share_api/share_api.h"

#include "api/job.h"
#include "session/session_json.h"
#include "store/store.h"

#define ANSWER_MAX ((size_t)4 << 20)
#define SHARES_SHOWN 200 /* more than a session keeps */

/* A call on the session in the path. */
static struct sharing_call *begin(struct api_call *c, void (*done)(struct sharing_call *s))
{
    struct sharing_call *s = arena_new_of(c->mem, struct sharing_call);

    s->who = &c->who;
    s->mem = c->mem;
    s->name = c->match.n ? c->match.params[0] : STR_NONE;
    s->done = done;
    s->user = c;
    return s;
}

/* A session of somebody else looks like an unknown one. */
static void refuse(const struct sharing_call *s)
{
    struct api_call *c = s->user;

    c->reg.result = REGISTRY_MISSING;
    if (s->err.code == ERR_SESSION_NOT_FOUND)
        api_refuse_result(c);
    else if (s->err.code == ERR_LIMIT)
        api_problem(c, ERR_LIMIT, "a limit has been reached", s->err.text,
                    STR("Retry-After: 60\r\n"));
    else
        api_refuse(c, s->err.code, "%s", s->err.text);
}

static void reply(struct api_call *c, int status, struct str headers, struct buf *out)
{
    struct str body = arena_dup(c->mem, buf_str(out));

    buf_release(out);
    api_reply(c, status, headers, body);
}

static void on_created(struct sharing_call *s)
{
    struct api_call *c = s->user;
    struct js_writer w;
    struct buf out;

    if (!s->ok) {
        refuse(s);
        return;
    }
    buf_init(&out, ANSWER_MAX);
    js_begin(&w, &out);
    js_object(&w);
    share_to_json(&s->share, &w);
    if (s->new_code[0])
        js_kv_string(&w, "code", str_of(s->new_code));
    js_object_end(&w);
    reply(c, 201,
          arena_printf(c->mem,
                       "Location: /api/v1/sessions/%.*s/shares/%.*s\r\nCache-Control: no-store\r\n",
                       STR_ARG(api_in_path(c, c->match.params[0])), STR_ARG(s->share.id)),
          &out);
}

void api_create_share(struct api_call *c)
{
    struct share_body body = {.wish.may = SHARE_USE};
    struct share_wish *wish = &body.wish;

    if (!api_bind(c, js_root(&c->doc), &body_share, &body, NULL, NULL) || !api_own_tenant(c))
        return;
    bool by_code = !wish->user.p && !wish->client.p;
    if (!by_code && wish->access_ms) {
        api_refuse(c, ERR_BAD_INPUT,
                   "\"access\" is for codes; \"expires\" ends the access of a user or client");
        return;
    }
    struct sharing_call *s = begin(c, on_created);
    s->wish = *wish;
    sharing_create(c->sv->sharing, s);
}

static void on_listed(struct sharing_call *s)
{
    struct api_call *c = s->user;
    struct js_writer w;
    struct buf out;

    if (!s->ok) {
        refuse(s);
        return;
    }
    buf_init(&out, ANSWER_MAX);
    js_begin(&w, &out);
    js_object(&w);
    js_key(&w, STR("shares"));
    js_array(&w);
    for (size_t i = 0; i < s->n; i++) {
        js_object(&w);
        share_to_json(&s->rows[i], &w);
        js_object_end(&w);
    }
    js_array_end(&w);
    js_kv_int(&w, "count", (int64_t)s->n);
    js_object_end(&w);
    reply(c, 200, STR_NONE, &out);
}

void api_list_shares(struct api_call *c)
{
    struct sharing_call *s;

    if (!api_own_tenant(c))
        return;
    s = begin(c, on_listed);
    s->limit = SHARES_SHOWN;
    sharing_list(c->sv->sharing, s);
}

static void on_ended(struct sharing_call *s)
{
    struct api_call *c = s->user;
    struct js_writer w;
    struct buf out;

    if (!s->ok) {
        refuse(s);
        return;
    }
    buf_init(&out, ANSWER_MAX);
    js_begin(&w, &out);
    js_object(&w);
    share_to_json(&s->share, &w);
    js_object_end(&w);
    reply(c, 200, STR_NONE, &out);
}

void api_end_share(struct api_call *c)
{
    struct sharing_call *s;

    if (!api_own_tenant(c))
        return;
    s = begin(c, on_ended);
    s->share_id = c->match.params[1];
    sharing_end(c->sv->sharing, s);
}

/* As GET /sessions/{id} shows it. */
static struct str session_text(struct api_call *c, const struct session_row *row)
{
    struct buf json, aged;
    struct js_writer w;

    buf_init(&json, ANSWER_MAX);
    buf_init(&aged, ANSWER_MAX);
    js_begin(&w, &json);
    session_to_json(row, &w);
    session_add_age(&aged, buf_str(&json), row->created_ms);
    struct str text = arena_dup(c->mem, buf_str(&aged));
    buf_release(&json);
    buf_release(&aged);
    return text;
}

static void on_joined(struct sharing_call *s)
{
    struct api_call *c = s->user;
    struct js_writer w;
    struct buf out;

    if (!s->ok) {
        refuse(s);
        return;
    }
    buf_init(&out, ANSWER_MAX);
    js_begin(&w, &out);
    js_object(&w);
    js_key(&w, STR("share"));
    js_object(&w);
    share_to_json(&s->share, &w);
    js_object_end(&w);
    js_kv_raw(&w, "session", session_text(c, s->session));
    js_key(&w, STR("servers"));
    js_array(&w);
    for (size_t i = 0; i < s->n_links; i++)
        js_string(&w, s->links[i].server);
    js_array_end(&w);
    js_object_end(&w);
    reply(c, 200, STR_NONE, &out);
}

static void on_forked(struct sharing_call *s)
{
    struct api_call *c = s->user;
    char tag[SESSION_TAG_TEXT];

    if (!s->ok && s->err.code == ERR_SESSION_LIMIT) {
        c->reg.result = REGISTRY_LIMIT;
        api_refuse_result(c);
        return;
    }
    if (!s->ok) {
        refuse(s);
        return;
    }
    struct str text = session_text(c, s->session);
    session_tag(s->session->version, text, tag);
    api_reply(c, 201,
              arena_printf(c->mem, "Location: /api/v1/sessions/%.*s\r\nETag: %s\r\n",
                           STR_ARG(api_in_path(c, s->session->handle)), tag),
              text);
}

void api_fork_session(struct api_call *c)
{
    struct sharing_call *s;

    if (!api_own_tenant(c))
        return;
    s = begin(c, on_forked);
    s->life_ms = api_default_ttl_ms(c);
    s->max_counted = api_max_sessions(c);
    sharing_fork(c->sv->sharing, s);
}

void api_join_session(struct api_call *c)
{
    struct join_body body = {0};
    struct sharing_call *s;

    if (!api_bind(c, js_root(&c->doc), &body_join, &body, NULL, NULL) || !api_own_tenant(c))
        return;
    if (!body.code.p && !body.session.p) {
        api_refuse(c, ERR_BAD_INPUT, "send \"code\", or \"session\" with a session_id");
        return;
    }
    s = begin(c, on_joined);
    s->name = body.session;
    s->code = body.code;
    s->client = body.client_name;
    s->former = body.former_owner;
    sharing_join(c->sv->sharing, s);
}
