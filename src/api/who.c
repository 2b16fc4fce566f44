/* SPDX-License-Identifier: Apache-2.0 */
/* Reads each owner and each session once per request. */
#include "api/who.h"

#include "base/principal.h"
#include "store/verbs.h"

struct owner_names {
    struct str user, key;
};

void who_init(struct who_names *w, struct store *store, struct arena *mem)
{
    *w = (struct who_names){.store = store, .mem = mem};
    map_init(&w->owners);
    map_init(&w->sessions);
}

void who_release(struct who_names *w)
{
    map_release(&w->owners);
    map_release(&w->sessions);
}

static struct str user_name(struct who_names *w, struct str tenant, struct str id)
{
    struct user_row *row = NULL;
    struct error err;

    if (!store_user_get(w->store, id, w->mem, &row, &err) || !row || !str_eq(row->tenant, tenant))
        return STR_NONE;
    return row->name;
}

static void read_key(struct who_names *w, struct str tenant, struct str id, struct owner_names *ret)
{
    struct key_row *row = NULL;
    struct error err;

    if (!store_key_get(w->store, id, w->mem, &row, &err) || !row || !str_eq(row->tenant, tenant))
        return;
    ret->key = row->name.n ? row->name : row->id;
    if (row->user_id.p)
        ret->user = user_name(w, tenant, row->user_id);
}

static struct owner_names *owner_of(struct who_names *w, struct str tenant, struct str owner)
{
    struct str key = arena_printf(w->mem, "%.*s\n%.*s", STR_ARG(tenant), STR_ARG(owner));
    struct owner_names *names = map_get(&w->owners, key);
    struct str rest = owner, kind = str_split(&rest, ':');

    if (names)
        return names;
    names = arena_new_of(w->mem, struct owner_names);
    if (str_eq(kind, STR("user")) && rest.p)
        names->user = user_name(w, tenant, rest);
    else if (str_eq(kind, STR("key")) && rest.p)
        read_key(w, tenant, rest, names);
    map_put(&w->owners, key, names);
    return names;
}

static struct str client_of(struct who_names *w, struct str tenant, struct str session)
{
    struct principal who = {.tenant = tenant, .owner = STR(""), .tenant_wide = true};
    struct str key = arena_dup(w->mem, session), *client = map_get(&w->sessions, key);
    struct session_row *row = NULL;
    struct error err;

    if (client || !session.n)
        return client ? *client : STR_NONE;
    client = arena_new_of(w->mem, struct str);
    if (store_session_by_id(w->store, &who, session, w->mem, &row, &err) && row)
        *client = row->client_name.n ? row->client_name : row->client_type;
    map_put(&w->sessions, key, client);
    return *client;
}

void who_owner(struct who_names *w, struct str tenant, struct str owner, struct str *ret_user,
               struct str *ret_key)
{
    const struct owner_names *names = owner_of(w, tenant, owner);

    *ret_user = names->user;
    *ret_key = names->key;
}

void who_fill(struct who_names *w, struct execution *x)
{
    const struct event_row *e = &x->event;
    const struct owner_names *names = owner_of(w, e->tenant, e->owner);

    x->user = names->user;
    x->key = names->key;
    x->client = client_of(w, e->tenant, e->session_id);
}

bool who_fits(void *arg, const struct execution *x)
{
    struct who_names *w = arg;
    const struct owner_names *names = owner_of(w, x->event.tenant, x->event.owner);
    struct str rest = x->event.owner;

    str_split(&rest, ':');
    return str_eq(w->wanted, names->user.p ? names->user : STR("")) ||
           str_eq(w->wanted, names->key.p ? names->key : STR("")) ||
           str_eq(w->wanted, rest.p ? rest : x->event.owner);
}

/* Sets *ret to text(the body of the event), in w->mem.  On a busy store it stays absent, because the
 * row is worth more than its detail. */
static bool add_text(struct who_names *w, int64_t id,
                     struct str (*text)(struct str, struct arena *), struct str *ret,
                     struct error *err)
{
    int64_t scanned = 0;
    struct event_filter one = {.ret_scanned = &scanned,
                               .after = id - 1,
                               .before = id + 1,
                               .kind = -1,
                               .with_bodies = true};
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct event_row *rows = NULL;
    size_t n = 0;
    bool ok = store_events_page(w->store, &one, 1, mem, &rows, &n, err);

    if (ok && n)
        *ret = text(rows[0].body, w->mem);
    arena_free(mem);
    return ok || err->code == ERR_TIMEOUT;
}

bool who_add_arguments(struct who_names *w, struct execution *x, struct error *err)
{
    bool has_reply = x->outcome_id && !x->error.n && execution_failed(x->outcome);

    return (x->event.body_len < 0 ||
            add_text(w, x->event.id, execution_arguments, &x->arguments, err)) &&
           (!has_reply || add_text(w, x->outcome_id, execution_reply_text, &x->reply, err));
}
