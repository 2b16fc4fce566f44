/* SPDX-License-Identifier: Apache-2.0 */
/* One template: get, put, remove.  A change reads the newest version first, checks the condition of
 * the request and the new spec, and then commits the change together with an event.  The op checks
 * the version again, so of two changes at once one is refused. */
#include "templates/api/impl.h"

#include "api/tags.h"
#include "base/clock.h"
#include "base/log.h"
#include "front/front.h"
#include "session/session_json.h"
#include "templates/spec.h"
#include "templates/store/ops.h"
#include "templates/store/verbs.h"

#define MAX_BYTES (16u * 1024 * 1024)

struct template_call {
    struct api_job j;
    struct str name, if_match, if_none_match;
    int64_t version; /* that is asked for; 0: the newest */
    struct read_job read;
    struct template_row *row; /* NULL: there is none */
    struct template_change change;
    struct event_row event;
    struct store_op ops[2];
    struct write_job write;
};

bool template_read_name(struct api_call *c, struct str *ret)
{
    *ret = arena_dup(c->mem, c->match.params[0]);
    if (template_name_is_fit(*ret))
        return true;
    api_refuse(c, ERR_BAD_INPUT,
               "the name of a template has 1 to %d letters, digits and . _ -, and begins with a "
               "letter or digit; choose another",
               TEMPLATE_NAME_MAX);
    return false;
}

void template_write(struct js_writer *w, const struct template_row *row)
{
    js_object(w);
    js_kv_string(w, "name", row->name);
    js_kv_int(w, "version", row->version);
    json_kv_time(w, "created_at", row->created_ms);
    js_kv_string(w, "created_by", row->created_by);
    if (row->spec.p)
        js_kv_raw(w, "spec", row->spec);
    js_object_end(w);
}

/* The ETag of a row: its version, and a digest that tells it from that of a template which was
 * removed and made again. */
static void tag_of(const struct template_row *row, struct arena *mem, char ret[SESSION_TAG_TEXT])
{
    session_tag(row->version,
                arena_printf(mem, "%lld %.*s", (long long)row->created_ms, STR_ARG(row->spec)),
                ret);
}

static void refuse_missing(struct template_call *t)
{
    struct error err;

    if (t->version)
        error_set(&err, ERR_NOT_FOUND,
                  "there is no version %lld of a template %.*s; see `holdfast templates "
                  "versions %.*s`",
                  (long long)t->version, STR_ARG(t->name), STR_ARG(t->name));
    else
        error_set(&err, ERR_NOT_FOUND, "there is no template %.*s; see `holdfast templates list`",
                  STR_ARG(t->name));
    api_job_refuse(&t->j, &err);
}

/* With the ETag of the row that is there. */
static void refuse_condition(struct template_call *t, const char *text)
{
    char tag[SESSION_TAG_TEXT];
    struct str headers = STR_NONE;

    if (t->row) {
        tag_of(t->row, t->j.mem, tag);
        headers = arena_printf(t->j.call->mem, "ETag: %s\r\n", tag);
    }
    api_problem(t->j.call, ERR_PRECONDITION_FAILED, "precondition failed", text, headers);
    api_job_drop(&t->j);
}

static void reply_row(struct template_call *t, const struct template_row *row, int status)
{
    char tag[SESSION_TAG_TEXT];
    struct js_writer w;
    struct str location = STR("");

    tag_of(row, t->j.mem, tag);
    js_begin(&w, &t->j.out);
    template_write(&w, row);
    if (status == 201)
        location = arena_printf(t->j.mem, "Location: /api/v1/templates/%.*s\r\n", STR_ARG(t->name));
    api_job_end(&t->j, status,
                arena_printf(t->j.call->mem, "%.*sETag: %s\r\n", STR_ARG(location), tag));
}

/* Reading. */

static bool run_find(struct read_job *job, struct store *store)
{
    struct template_call *t = container_of(job, struct template_call, read);
    return store_template(store, t->j.call->who.tenant, t->name, t->version, t->j.mem, &t->row,
                          &job->err);
}

/* NULL: the refusal was sent. */
static struct template_call *call_new(struct api_call *c)
{
    struct str name;

    if (!template_read_name(c, &name) || !api_own_tenant(c))
        return NULL;
    struct template_call *t = api_job_new(sizeof(*t), MAX_BYTES, c);
    t->name = name;
    t->if_match = http_header_get(c->http->head, STR("if-match"));
    t->if_none_match = http_header_get(c->http->head, STR("if-none-match"));
    return t;
}

static void find(struct template_call *t, void (*done)(struct read_job *job))
{
    t->read = (struct read_job){.run = run_find, .done = done};
    if (!lane_lookup(t->j.call->sv->lanes, &t->read))
        api_job_busy(&t->j);
}

/* false: the refusal was sent. */
static bool was_read(struct template_call *t)
{
    if (!t->read.ok)
        api_job_refuse(&t->j, &t->read.err);
    return t->read.ok;
}

static void on_got(struct read_job *job)
{
    struct template_call *t = container_of(job, struct template_call, read);
    char tag[SESSION_TAG_TEXT];

    if (!was_read(t))
        return;
    if (!t->row) {
        refuse_missing(t);
        return;
    }
    tag_of(t->row, t->j.mem, tag);
    if (t->if_none_match.p && tags_have(t->if_none_match, str_of(tag)))
        api_job_end(&t->j, 304, arena_printf(t->j.call->mem, "ETag: %s\r\n", tag));
    else
        reply_row(t, t->row, 200);
}

void api_get_template(struct api_call *c)
{
    struct template_call *t = call_new(c);

    if (!t)
        return;
    if (!api_query_number(c, "version", 1, TEMPLATE_VERSIONS_MAX, 0, &t->version))
        api_job_drop(&t->j);
    else
        find(t, on_got);
}

/* Changing. */

static void write_with_event(struct template_call *t, struct store_op op, int64_t version,
                             const char *method, void (*done)(struct write_job *job))
{
    struct api_call *c = t->j.call;

    t->event = (struct event_row){
        .tenant = c->who.tenant,
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = arena_printf(t->j.mem, "template:%.*s@%lld", STR_ARG(t->name), (long long)version),
        .method = str_of(method),
        .outcome = STR("ok"),
        .error = api_by(c, t->j.mem),
        .body_len = -1,
    };
    op.required = true;
    t->ops[0] = op;
    t->ops[1] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &t->event};
    t->write = (struct write_job){.ops = t->ops, .n = 2, .done = done};
    if (!lane_write(c->sv->lanes, &t->write))
        api_job_busy(&t->j);
}

/* true: it was refused, and the refusal was sent. */
static bool is_refused(struct template_call *t)
{
    struct error err;

    if (t->write.ok)
        return false;
    switch (t->ops[0].verdict) {
    case VERDICT_STALE:
        t->row = NULL;
        refuse_condition(t, "another change of the template came first; read it again");
        return true;
    case VERDICT_MISSING:
        refuse_missing(t);
        return true;
    case VERDICT_LIMIT:
        if (t->row)
            error_set(&err, ERR_LIMIT,
                      "the template %.*s has %d versions, and no more are kept; set it under "
                      "another name, or remove it first",
                      STR_ARG(t->name), TEMPLATE_VERSIONS_MAX);
        else
            error_set(&err, ERR_LIMIT,
                      "the tenant has %d templates already; remove one with `holdfast templates "
                      "remove NAME`",
                      TEMPLATES_MAX);
        api_job_refuse(&t->j, &err);
        return true;
    default:
        api_job_refuse(&t->j, &t->write.err);
        return true;
    }
}

static void on_put(struct write_job *job)
{
    struct template_call *t = container_of(job, struct template_call, write);

    if (is_refused(t))
        return;
    log_info("a template was set", LS("name", t->name), LI("version", t->change.row.version));
    reply_row(t, &t->change.row, t->row ? 200 : 201);
}

/* Whether the request's condition holds for t->row.  false: the refusal was sent. */
static bool holds(struct template_call *t)
{
    char tag[SESSION_TAG_TEXT];
    int64_t version;

    if (t->row)
        tag_of(t->row, t->j.mem, tag);
    if (t->if_none_match.p && t->row) {
        refuse_condition(t, "the template exists already; send its ETag as If-Match to change it");
    } else if (t->if_match.p && !t->row) {
        refuse_missing(t);
    } else if (t->if_match.p && !(tags_match(t->if_match, t->row->version, &version) &&
                                  tags_have(t->if_match, str_of(tag)))) {
        refuse_condition(t, "the template has another version than the one in If-Match; read it "
                            "again");
    } else {
        return true;
    }
    return false;
}

static void on_read_to_put(struct read_job *job)
{
    struct template_call *t = container_of(job, struct template_call, read);
    struct api_call *c = t->j.call;

    if (!was_read(t) || !holds(t))
        return;
    if (t->row && str_eq(t->row->spec, t->change.row.spec)) {
        reply_row(t, t->row, 200);
        return;
    }
    t->change.expected = t->row ? t->row->version : 0;
    t->change.row.tenant = c->who.tenant;
    t->change.row.name = t->name;
    t->change.row.created_ms = clock_life_ms();
    t->change.row.created_by = c->who.owner;
    write_with_event(t, op_template_put(&t->change), t->change.expected + 1, "template/set",
                     on_put);
}

void api_put_template(struct api_call *c)
{
    struct template_call *t = call_new(c);
    struct template_spec spec;
    struct error err;

    if (!t)
        return;
    if (!t->if_match.p && !(t->if_none_match.p && str_eq(t->if_none_match, STR("*")))) {
        error_set(&err, ERR_PRECONDITION_MISSING,
                  "send the template's ETag as If-Match, or If-None-Match: * to make a new one");
        api_job_refuse(&t->j, &err);
        return;
    }
    t->change.row.spec = arena_dup(t->j.mem, js_raw(&c->doc, js_root(&c->doc)));
    if (!template_spec_parse(t->change.row.spec, t->j.mem, &spec, &err) ||
        !template_spec_check(&spec, c->config, c->who.tenant, &err)) {
        api_job_refuse(&t->j, &err);
        return;
    }
    find(t, on_read_to_put);
}

static void on_removed(struct write_job *job)
{
    struct template_call *t = container_of(job, struct template_call, write);

    if (is_refused(t))
        return;
    log_info("a template was removed", LS("name", t->name));
    api_job_end(&t->j, 204, STR_NONE);
}

/* The profile that begins sessions with this template, in whatever version; NULL: none. */
static const struct profile_config *user_of(const struct config *c, struct str template)
{
    for (size_t i = 0; i < c->n_profiles; i++) {
        struct str rest = c->profiles[i].template;
        if (rest.p && str_eq(str_split(&rest, '@'), template))
            return &c->profiles[i];
    }
    return NULL;
}

static void on_read_to_remove(struct read_job *job)
{
    struct template_call *t = container_of(job, struct template_call, read);
    struct error err;

    if (!was_read(t))
        return;
    if (!t->row) {
        refuse_missing(t);
        return;
    }
    if (!holds(t))
        return;
    const struct profile_config *user = user_of(t->j.call->config, t->name);
    if (user) {
        error_set(&err, ERR_CONFLICT,
                  "the profile %.*s begins sessions with this template; remove it from the "
                  "configuration first",
                  STR_ARG(user->name));
        api_job_refuse(&t->j, &err);
        return;
    }
    t->change = (struct template_change){
        .row = {.tenant = t->j.call->who.tenant, .name = t->name},
        .expected = t->if_match.p ? t->row->version : -1,
    };
    write_with_event(t, op_template_remove(&t->change), t->row->version, "template/remove",
                     on_removed);
}

void api_remove_template(struct api_call *c)
{
    struct template_call *t = call_new(c);

    if (t) {
        t->if_none_match = STR_NONE;
        find(t, on_read_to_remove);
    }
}
