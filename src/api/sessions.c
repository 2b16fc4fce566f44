/* SPDX-License-Identifier: Apache-2.0 */
/* /sessions: create, list, get, change, end, totals. */
#include "api/bodies.h"
#include "api/cursor.h"
#include "api/job.h"
#include "api/page.h"
#include "api/tags.h"

#include "base/clock.h"
#include "base/random.h"
#include "crypto/hash.h"
#include "identity/connection.h"
#include "json/write.h"
#include "session/keyring.h"
#include "json/merge.h"
#include "templates/find.h"

#include <stdio.h>

#define PAGE_DEFAULT 50
#define REASON_MAX 255
#define REASON_DEFAULT "client request"

/* Create. */

struct creating {
    struct session_body body;
    struct session_row row;
    struct keyring_job seal;
    struct template_find found; /* the template; .row NULL: none is named */
    char id[UUID_TEXT], handle[HANDLE_LENGTH + 1], context_id[UUID_TEXT];
};

static void fill_row(struct api_call *c, struct creating *k)
{
    const struct session_body *b = &k->body;
    int64_t now = clock_life_ms();

    random_uuid7(k->id);
    token_handle(k->handle);
    k->row = (struct session_row){
        .id = str_of(k->id),
        .handle = b->session_id.p ? b->session_id : str_of(k->handle),
        .tenant = c->who.tenant,
        .owner = c->who.owner,
        .user_id = c->who.user_id,
        .edge_mcp_id = b->edge_mcp_id,
        .client_name = b->client_name.n ? b->client_name : STR_NONE,
        .client_type = b->client_type,
        .client_version = b->client_version.n ? b->client_version : STR_NONE,
        .status = SESSION_ACTIVE,
        .origin = ORIGIN_REST,
        .initialized = b->initialized,
        .counted = true,
        .carrier = STR("rest"),
        .core_session_id = b->core_session_id.n ? b->core_session_id : STR_NONE,
        .connection_metadata = connection_metadata(c->config, c->http, b->metadata, c->mem),
        .context_id = b->context_id,
        .created_ms = now,
        .last_activity_ms = now,
        .expires_ms = now + (b->ttl_ms ? b->ttl_ms : api_default_ttl_ms(c)),
        .ttl_ms = b->ttl_ms,
        .version = 1,
    };
}

/* The members of the request, over those of the template. */
static struct str merged_metadata(struct api_call *c, struct str under, struct str over)
{
    struct str text = over;
    struct buf out;

    if (!under.p || !over.p)
        return over.p ? over : under;
    buf_init(&out, 1024 * 1024);
    if (json_merge(under, over, MERGE_PATCH, c->mem, &out))
        text = arena_dup(c->mem, buf_str(&out));
    buf_release(&out);
    return text;
}

/* Fills what the request left out. */
static void take_template(struct api_call *c, struct creating *k)
{
    const struct template_spec *t = &k->found.spec;
    struct session_row *row = &k->row;

    if (!k->body.ttl_ms && t->ttl_ms) {
        row->ttl_ms = t->ttl_ms;
        row->expires_ms = row->created_ms + t->ttl_ms;
    }
    row->setup = template_setup(t, k->found.row, c->mem);
    row->toolsets = template_toolsets(t, c->mem);
    if (t->metadata.p)
        row->connection_metadata = connection_metadata(
            c->config, c->http, merged_metadata(c, t->metadata, k->body.metadata), c->mem);
    if (t->context.p && !row->context_id.p) {
        random_uuid7(k->context_id);
        row->context_id = str_of(k->context_id);
    }
}

static struct str with_age(struct str json, int64_t created_ms, struct arena *mem)
{
    struct buf out;

    buf_init(&out, 2 * 1024 * 1024);
    session_add_age(&out, json, created_ms);
    struct str text = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return text;
}

static struct str session_text(const struct session_row *row, struct arena *mem)
{
    struct js_writer w;
    struct buf out;

    buf_init(&out, 1024 * 1024);
    js_begin(&w, &out);
    session_to_json(row, &w);
    struct str text = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return text;
}

/* RateLimit of draft-ietf-httpapi-ratelimit-headers: the limit of sessions, and how many are left.
 * There is no reset time, because the quota is freed when sessions end. */
static struct str limit_lines(struct api_call *c, int64_t counted)
{
    int64_t most = api_max_sessions(c), left = counted < most ? most - counted : 0;

    if (most < 0)
        return STR_NONE;
    if (counted < 0)
        return arena_printf(c->mem, "RateLimit-Policy: \"sessions\";q=%lld\r\n", (long long)most);
    return arena_printf(
        c->mem, "RateLimit-Policy: \"sessions\";q=%lld\r\nRateLimit: \"sessions\";r=%lld\r\n",
        (long long)most, (long long)left);
}

static void on_created(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);

    if (reg->result == REGISTRY_OK)
        api_reply_prepared(c, limit_lines(c, reg->counted));
    else if (reg->result == REGISTRY_LIMIT)
        api_problem(
            c, ERR_SESSION_LIMIT, "session limit exceeded for tenant",
            "The tenant has as many live sessions as it may; end one that is not needed any more "
            "with DELETE /api/v1/sessions/{id}, wait for one to expire, or raise "
            "session.limits.max_per_tenant.",
            arena_printf(c->mem, "%.*sRetry-After: 60\r\n", STR_ARG(limit_lines(c, INT64_MAX))));
    else
        api_refuse_result(c);
}

/* Seals the credentials of a body for the session with this row id.  true: finished, see j->ok.
 * false: `done` will be called. */
static bool seal_auth(struct api_call *c, struct keyring_job *j, struct str id,
                      const struct session_body *body, void (*done)(struct keyring_job *j))
{
    *j = (struct keyring_job){
        .place = {c->who.tenant, id, STR(SEALED_FIELD_AUTH)},
        .services = body->auth_services,
        .plain = body->passthrough_auth,
        .mem = c->mem,
        .done = done,
        .user = c,
    };
    return keyring_seal(c->sv->keyring, j);
}

/* Wipes the plain text in the request's memory.  false: sealing failed; the refusal was sent. */
static bool is_sealed(struct api_call *c, struct keyring_job *j)
{
    crypto_wipe((void *)j->plain.p, j->plain.n);
    if (!j->ok)
        api_refuse(c, j->err.code, "%s", j->err.text);
    return j->ok;
}

static void create_now(struct api_call *c)
{
    struct creating *k = c->args;
    struct str text = session_text(&k->row, c->mem);
    char tag[SESSION_TAG_TEXT];
    session_tag(k->row.version, text, tag);
    api_prepare(c, 201,
                arena_printf(c->mem, "Location: /api/v1/sessions/%.*s\r\nETag: %s\r\n",
                             STR_ARG(api_in_path(c, k->row.handle)), tag),
                with_age(text, k->row.created_ms, c->mem));
    api_session(c, on_created);
    if (k->context_id[0])
        c->reg.first_context = k->found.spec.context;
    registry_create(c->sv->registry, &c->reg, &k->row, api_max_sessions(c));
}

static void on_create_sealed(struct keyring_job *j)
{
    struct api_call *c = j->user;
    struct creating *k = c->args;

    if (!is_sealed(c, j))
        return;
    k->row.sealed_auth = j->result;
    create_now(c);
}

static void create(struct api_call *c)
{
    struct creating *k = c->args;

    fill_row(c, k);
    if (k->found.row)
        take_template(c, k);
    if (!k->body.passthrough_auth.p)
        create_now(c);
    else if (seal_auth(c, &k->seal, k->row.id, &k->body, on_create_sealed))
        on_create_sealed(&k->seal);
}

static void on_template(struct template_find *found)
{
    struct api_call *c = found->user;
    struct creating *k = c->args;

    if (!found->ok)
        api_refuse(c, found->err.code, "%s", found->err.text);
    else if (found->spec.ttl_ms && k->body.ttl_ms > found->spec.ttl_ms)
        api_refuse(
            c, ERR_BAD_INPUT,
            "\"ttl\" is longer than that of the template %.*s; leave it out, or ask for less",
            STR_ARG(found->ref));
    else
        create(c);
}

void api_create_session(struct api_call *c)
{
    struct creating *k = arena_new_of(c->mem, struct creating);

    c->args = k;
    if (!api_bind(c, js_root(&c->doc), &body_session, &k->body, NULL, NULL))
        return;
    if (!k->body.template.p) {
        create(c);
        return;
    }
    k->found = (struct template_find){
        .tenant = c->who.tenant,
        .ref = k->body.template,
        .config = c->config,
        .mem = c->mem,
        .done = on_template,
        .user = c,
    };
    if (!template_find(c->sv->lanes, &k->found))
        api_refuse(c, k->found.err.code, "%s", k->found.err.text);
}

/* Get. */

static void on_got(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);

    if (reg->result != REGISTRY_OK) {
        api_refuse_result(c);
        return;
    }
    struct str known = http_header_get(c->http->head, STR("if-none-match"));
    bool is_known = unlikely(known.p != NULL) && tags_have(known, reg->tag);
    char line[SESSION_TAG_TEXT + 16];
    int n = 0;
    memcpy(line, "ETag: ", 6);
    memcpy(line + 6, reg->tag.p, reg->tag.n);
    n = 6 + (int)reg->tag.n;
    line[n++] = '\r';
    line[n++] = '\n';
    api_reply(c, is_known ? 304 : 200, str_n(line, (size_t)n),
              is_known ? STR_NONE : with_age(reg->json, reg->row->created_ms, c->mem));
}

void api_get_session(struct api_call *c)
{
    api_session(c, on_got);
    c->reg.reach = REACH_READ;
    if (registry_get(c->sv->registry, &c->reg))
        on_got(&c->reg);
}

void api_get_session_by_id(struct api_call *c)
{
    api_session(c, on_got);
    c->reg.reach = REACH_READ;
    c->reg.by_id = true;
    c->reg.name = uuid_lower(c->reg.name, c->mem);
    if (registry_get(c->sv->registry, &c->reg))
        on_got(&c->reg);
}

/* List. */

struct listing {
    const char *path; /* of the list, for the Link header */
    struct session_filter filter;
    int64_t limit;
    struct str about, query; /* the query, as the cursor and the Link header hold it */
};

/* A list of statuses, or "all". */
static bool read_statuses(struct api_call *c, struct str text, unsigned *ret)
{
    unsigned statuses = 0;

    if (str_eq(text, STR("all"))) {
        *ret = 0;
        return true;
    }
    while (text.p) {
        enum session_status status;
        if (!session_status_parse(str_trim(str_split(&text, ',')), &status)) {
            api_refuse(c, ERR_BAD_INPUT,
                       "?status= is a list of active, idle, expired and terminated, or all");
            return false;
        }
        statuses |= 1u << status;
    }
    *ret = statuses;
    return true;
}

/* The statuses as a list without blanks, for the Link header. */
static struct str statuses_text(unsigned statuses, struct arena *mem)
{
    struct str text = STR("");

    for (unsigned s = SESSION_ACTIVE; s <= SESSION_TERMINATED; s++)
        if (statuses & 1u << s)
            text = arena_printf(mem, "%.*s%s%s", STR_ARG(text), text.n ? "," : "",
                                session_status_name(s));
    return statuses ? text : STR("all");
}

static bool read_client_type(struct api_call *c, struct str *ret)
{
    struct error err;

    if (!api_query(c, "client_type", ret))
        return false;
    if (!ret->p || client_type_parse(*ret, ret, &err))
        return true;
    api_refuse(c, err.code, "%s", err.text);
    return false;
}

bool api_query_statuses(struct api_call *c, unsigned if_absent, unsigned *ret)
{
    struct str text;

    if (!api_query(c, "status", &text))
        return false;
    *ret = if_absent;
    return !text.p || read_statuses(c, text, ret);
}

static bool read_listing(struct api_call *c, struct listing *l, unsigned statuses)
{
    struct str status, type, cursor;

    if (!api_query(c, "status", &status) || !read_client_type(c, &type) ||
        !api_query(c, "cursor", &cursor) ||
        !api_query_number(c, "limit", 1, STORE_PAGE_MAX, PAGE_DEFAULT, &l->limit))
        return false;
    l->filter = (struct session_filter){
        .statuses = statuses,
        .client_type = type,
        .now_ms = clock_life_ms(),
        .idle_ms = api_idle_ms(c),
    };
    if (status.p && !read_statuses(c, status, &l->filter.statuses))
        return false;
    l->about = arena_printf(c->mem, "sessions %u %.*s", l->filter.statuses, STR_ARG(type));
    l->query = arena_printf(c->mem, "limit=%lld%s%.*s%s%.*s", (long long)l->limit,
                            status.p ? "&status=" : "",
                            STR_ARG(status.p ? statuses_text(l->filter.statuses, c->mem) : status),
                            type.p ? "&client_type=" : "", STR_ARG(type));
    if (cursor.p && (!cursor_read(cursor, &c->who, l->about, c->mem, &l->filter.before) ||
                     !text_is_uuid(l->filter.before)))
        return page_refuse_cursor(c);
    return true;
}

static void on_listed(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);
    struct listing *l = c->args;
    struct page_place place = {.who = &c->who, .about = l->about};
    struct js_writer w;
    struct buf out;
    bool more;

    if (reg->result != REGISTRY_OK) {
        api_refuse_result(c);
        return;
    }
    size_t n = page_cut(reg, l->limit, &more);
    place.url = arena_printf(c->mem, "%s?%.*s", l->path, STR_ARG(l->query));
    buf_init(&out, 64u * 1024 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    js_key(&w, STR("sessions"));
    js_array(&w);
    for (size_t i = 0; i < n; i++)
        js_raw_value(
            &w, with_age(session_text(&reg->rows[i], c->mem), reg->rows[i].created_ms, c->mem));
    js_array_end(&w);
    struct str link = page_end(&place, &w, n, more ? reg->rows[n - 1].id : STR_NONE, c->mem);
    struct str body = arena_dup(c->mem, buf_str(&out));
    buf_release(&out);
    api_reply(c, 200, link, body);
}

static void list_sessions(struct api_call *c, unsigned statuses)
{
    struct listing *l = arena_new_of(c->mem, struct listing);

    c->args = l;
    l->path = c->op->pattern;
    if (!read_listing(c, l, statuses))
        return;
    api_session(c, on_listed);
    registry_list(c->sv->registry, &c->reg, &l->filter,
                  (unsigned)l->limit + (l->limit < STORE_PAGE_MAX));
}

void api_list_sessions(struct api_call *c)
{
    list_sessions(c, 1u << SESSION_ACTIVE | 1u << SESSION_IDLE);
}

void api_list_active_sessions(struct api_call *c)
{
    list_sessions(c, 1u << SESSION_ACTIVE);
}

/* Change. */

struct patching {
    struct session_body body;
    unsigned columns;
    struct session_row change;
    struct str if_match;
    struct keyring_job seal;
    struct session_setup_change setup;
    struct event_row event; /* of a changed set-up */
    struct str id;
    int64_t version;
};

/* Called for the members of "setup" too. */
static void note_column(const struct js_binding *b, const struct js_field *field,
                        const struct js_node *key unused_arg)
{
    struct patching *p = b->user;
    struct str name = str_of(field->name);

    p->columns |= body_patch_column(field);
    p->setup.sets_audit = p->setup.sets_audit || str_eq(name, STR("audit"));
    p->setup.sets_audit_body = p->setup.sets_audit_body || str_eq(name, STR("audit_body"));
    p->setup.sets_limits = p->setup.sets_limits || str_eq(name, STR("limits"));
}

static void on_patched(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);

    struct patching *p = c->args;

    if (reg->result != REGISTRY_OK) {
        api_refuse_result(c);
        return;
    }
    if (p->columns & FIELD_SEALED_AUTH)
        sessions_sealed(c->sv->sessions, c->who.tenant, p->id, p->change.sealed_auth);
    if (p->columns & FIELD_CORE_SESSION_ID)
        sessions_core_changed(c->sv->sessions, c->who.tenant, p->id);
    if (p->columns & FIELD_SETUP)
        sessions_setup_changed(c->sv->sessions, c->who.tenant, p->id, p->change.setup);
    api_session(c, on_got);
    if (registry_get(c->sv->registry, &c->reg))
        on_got(&c->reg);
}

static void patch_now(struct api_call *c)
{
    struct patching *p = c->args;

    api_session(c, on_patched);
    if (p->columns & FIELD_SETUP)
        c->reg.event = &p->event;
    registry_patch(c->sv->registry, &c->reg, &p->change, p->columns, p->version);
}

static void on_patch_sealed(struct keyring_job *j)
{
    struct api_call *c = j->user;
    struct patching *p = c->args;

    if (!is_sealed(c, j))
        return;
    p->change.sealed_auth = j->result;
    patch_now(c);
}

/* false: the refusal was sent. */
static bool change_setup(struct api_call *c, struct patching *p, const struct session_row *row)
{
    struct session_setup setup = {0};
    struct error err;

    p->setup.to = p->body.setup;
    if (row->setup.p && !session_setup_parse(row->setup, c->mem, &setup)) {
        api_refuse(c, ERR_INTERNAL, "the set-up of the session cannot be read");
        return false;
    }
    if (!session_setup_apply(&p->setup, &setup, &err)) {
        api_refuse(c, err.code, "%s", err.text);
        return false;
    }
    p->change.setup = session_setup_write(&setup, c->mem);
    p->event = (struct event_row){
        .tenant = c->who.tenant,
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = arena_dup(c->mem, row->owner),
        .session_id = p->id,
        .method = STR("session/setup"),
        .outcome = STR("ok"),
        .error = arena_printf(c->mem, "by %.*s: %.*s", STR_ARG(c->who.owner),
                              STR_ARG(p->change.setup.p ? p->change.setup : STR("{}"))),
        .body_len = -1,
    };
    return true;
}

static void on_patch_read(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);
    struct patching *p = c->args;
    const struct session_body *b = &p->body;

    if (reg->result != REGISTRY_OK) {
        api_refuse_result(c);
        return;
    }
    if (!tags_match(p->if_match, reg->row->version, &p->version))
        p->version = -1; /* no row has it; the store reports other errors first */
    p->change = (struct session_row){
        .client_name = b->client_name,
        .client_type = b->client_type,
        .client_version = b->client_version,
        .core_session_id = b->core_session_id,
        .context_id = b->context_id,
        .initialized = b->initialized,
        .connection_metadata =
            connection_metadata_again(reg->row->connection_metadata, b->metadata, c->mem),
    };
    p->id = arena_dup(c->mem, reg->row->id);
    if (p->columns & FIELD_SETUP && !change_setup(c, p, reg->row))
        return;
    if (!b->passthrough_auth.p)
        patch_now(c);
    else if (seal_auth(c, &p->seal, p->id, b, on_patch_sealed))
        on_patch_sealed(&p->seal);
}

void api_patch_session(struct api_call *c)
{
    struct patching *p = arena_new_of(c->mem, struct patching);

    c->args = p;
    p->if_match = http_header_get(c->http->head, STR("if-match"));
    if (!p->if_match.p) {
        api_refuse(c, ERR_PRECONDITION_MISSING, "send the session's ETag as If-Match");
        return;
    }
    if (!api_bind(c, js_root(&c->doc), &body_session_patch, &p->body, p, note_column))
        return;
    if (!p->columns) {
        api_refuse(c, ERR_BAD_INPUT, "the body changes nothing; name at least one member");
        return;
    }
    if (p->columns & FIELD_SETUP && c->who.role != ROLE_ADMIN) {
        api_refuse(c, ERR_DENIED, "\"setup\" is for administrators; leave it out");
        return;
    }
    api_session(c, on_patch_read);
    if (registry_get(c->sv->registry, &c->reg))
        on_patch_read(&c->reg);
}

/* End. */

static void on_ended(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);

    if (reg->result == REGISTRY_OK)
        api_reply(c, 200, STR_NONE, STR("{\"message\":\"session terminated\"}"));
    else
        api_refuse_result(c);
}

void api_end_session(struct api_call *c)
{
    struct str reason;

    if (!api_query(c, "reason", &reason) || !api_own_tenant(c))
        return;
    if (reason.n > REASON_MAX) {
        api_refuse(c, ERR_BAD_INPUT, "?reason= is at most %d bytes", REASON_MAX);
        return;
    }
    api_session(c, on_ended);
    registry_end(c->sv->registry, &c->reg, reason.n ? reason : STR(REASON_DEFAULT));
}

/* Totals. */

static void on_totals(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);
    struct js_writer w;
    struct buf out;

    if (reg->result != REGISTRY_OK) {
        api_refuse_result(c);
        return;
    }
    buf_init(&out, 4096);
    js_begin(&w, &out);
    session_totals_to_json(&reg->totals, &w);
    struct str body = arena_dup(c->mem, buf_str(&out));
    buf_release(&out);
    api_reply(c, 200, STR_NONE, body);
}

void api_session_metrics(struct api_call *c)
{
    struct str since;
    int64_t ms = INT64_C(24) * 3600 * 1000;

    if (!api_query(c, "since", &since))
        return;
    if (since.p && (!clock_parse_duration(since, &ms) || ms < 0)) {
        api_problem(c, ERR_BAD_DURATION, "invalid duration",
                    "?since= is a duration such as 30m, 24h or 7d.", STR_NONE);
        return;
    }
    int64_t now = clock_life_ms();
    api_session(c, on_totals);
    registry_totals(c->sv->registry, &c->reg, ms < now ? now - ms : 0);
}
