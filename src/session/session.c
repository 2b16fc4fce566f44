/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of sessions and transports in use, and their lifetimes. */
#include "session/session.h"
#include "session/session_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/utf8.h"
#include "crypto/hash.h"
#include "session/profile_context.h"
#include "session/read_your_writes.h"
#include "session/resident.h"
#include "session/setup.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define RESIDENT_BYTES (16u * 1024 * 1024)
#define TOUCH_EVERY_MS (5 * 60 * 1000)
#define LINK_WRITE_BYTES (64u * 1024)
#define CORE_ID_MAX 255 /* bytes, as for an id that the client sets */

struct sessions *sessions_new(const struct sessions_config *config)
{
    struct sessions *s = xcalloc(1, sizeof(*s));
    s->lanes = config->lanes;
    s->writer = config->writer;
    s->max_resident = config->max_resident;
    s->max_snapshot_bytes =
        config->max_snapshot_bytes ? config->max_snapshot_bytes : SNAPSHOT_BYTES_MAX;
    s->live = live_new();
    s->bindings = bindings_new(config->has_bindings);
    s->is_shared = config->is_shared;
    s->node.p = strndup(config->node.p, config->node.n);
    s->node.n = config->node.n;
    map_init(&s->names);
    list_init(&s->idle_sessions);
    list_init(&s->idle_rows);
    list_init(&s->snapshots);
    list_init(&s->idle_transports);
    return s;
}

struct str sessions_node(const struct sessions *s)
{
    return s->node;
}

int64_t sessions_writer(const struct sessions *s)
{
    return s->writer;
}

unsigned sessions_resident(const struct sessions *s)
{
    return s->n_sessions + s->n_transports;
}

struct str sessions_key_in(char *room, size_t n, char kind, struct str tenant, struct str owner,
                           struct str a, struct str b)
{
    const struct str parts[] = {tenant, owner, a, b};
    char *at = room;

    if (n < 4 + tenant.n + owner.n + a.n + b.n)
        return STR_NONE;
    *at++ = kind;
    for (size_t i = 0; i < countof(parts); i++) {
        if (i)
            *at++ = '\0';
        if (parts[i].n)
            memcpy(at, parts[i].p, parts[i].n);
        at += parts[i].n;
    }
    return str_n(room, (size_t)(at - room));
}

struct str sessions_key(struct arena *mem, char kind, struct str tenant, struct str owner,
                        struct str a, struct str b)
{
    size_t n = 4 + tenant.n + owner.n + a.n + b.n;
    return sessions_key_in(arena_alloc(mem, n), n, kind, tenant, owner, a, b);
}

static void forget_names(struct session *s)
{
    struct str *const keys[] = {&s->key_by_id, &s->key_by_handle, &s->key_by_key};

    for (size_t i = 0; i < countof(keys); i++) {
        if (keys[i]->p && map_get(&s->home->names, *keys[i]) == s)
            map_remove(&s->home->names, *keys[i]);
        *keys[i] = STR_NONE;
    }
    s->ended = true;
}

static void session_drop(struct session *s)
{
    forget_names(s);
    session_drop_snapshot(s);
    list_remove(&s->lru);
    s->home->n_sessions--;
    free((char *)s->sealed_auth.p);
    free((char *)s->toolsets.p);
    free((char *)s->setup.p);
    session_setup_free(s->rules);
    session_first_free(s->first);
    for (struct session_link *l = s->links; l; l = l->next)
        free((char *)l->resume.p);
    arena_free(s->mem);
    free(s);
}

static void transport_drop(struct transport *t)
{
    transport_forget(t);
    list_remove(&t->lru);
    t->home->n_transports--;
    session_unref(t->session);
    arena_free(t->mem);
    free(t);
}

void sessions_free(struct sessions *s)
{
    list_each(&s->idle_transports, t) transport_drop(list_entry(t, struct transport, lru));
    list_each(&s->idle_sessions, n) session_drop(list_entry(n, struct session, lru));
    list_each(&s->idle_rows, n) session_drop(list_entry(n, struct session, lru));
    map_release(&s->names);
    live_free(s->live);
    bindings_free(s->bindings);
    free((char *)s->node.p);
    free(s);
}

void session_ref(struct session *s)
{
    if (s->refs++ == 0)
        list_remove(&s->lru);
}

/* Sessions that no MCP client uses are dropped first. */
static bool drop_oldest(struct sessions *home)
{
    struct list *oldest = list_first(&home->idle_rows);

    if (!oldest)
        oldest = list_first(&home->idle_sessions);
    if (oldest)
        session_drop(list_entry(oldest, struct session, lru));
    return oldest != NULL;
}

bool sessions_make_room(struct sessions *home)
{
    while (home->n_sessions >= home->max_resident)
        if (!drop_oldest(home))
            return false;
    return true;
}

void session_unref(struct session *s)
{
    struct sessions *home;

    if (!s || --s->refs)
        return;
    if (s->ended || !s->stored) {
        session_drop(s);
        return;
    }
    home = s->home;
    list_push(s->links_known ? &home->idle_sessions : &home->idle_rows, &s->lru);
    if (home->n_sessions > home->max_resident)
        drop_oldest(home);
}

void transport_ref(struct transport *t)
{
    if (t->refs++ == 0)
        list_remove(&t->lru);
}

void transport_unref(struct transport *t)
{
    if (!t || --t->refs)
        return;
    if (t->ended) {
        transport_drop(t);
        return;
    }
    list_push(&t->home->idle_transports, &t->lru);
    if (t->home->n_transports > t->home->max_resident)
        transport_drop(list_entry(list_first(&t->home->idle_transports), struct transport, lru));
}

static void drop_over(struct list *idle, int64_t now_ms, unsigned most)
{
    struct list *it;

    for (unsigned n = 0; n < most && (it = list_first(idle)); n++) {
        struct session *session = list_entry(it, struct session, lru);
        if (!session_is_over(session, now_ms))
            break;
        session_drop(session);
    }
}

void sessions_drop_over(struct sessions *s, int64_t now_ms, unsigned most)
{
    struct list *it;

    drop_over(&s->idle_sessions, now_ms, most);
    drop_over(&s->idle_rows, now_ms, most);
    for (unsigned n = 0; n < most && (it = list_first(&s->idle_transports)); n++) {
        struct transport *t = list_entry(it, struct transport, lru);
        if (!transport_is_over(t, now_ms))
            break;
        transport_drop(t);
    }
}

/* One block for the texts and names of a session; links need further blocks. */
struct arena *session_arena(struct str tenant, struct str owner, struct str key, struct str client)
{
    return arena_new_for(RESIDENT_BYTES, 5 * (tenant.n + owner.n) + 2 * key.n + client.n + 400, 14);
}

static void enter_key(struct session *s)
{
    if (!s->carrier_key.p)
        return;
    s->key_by_key = sessions_key(s->mem, 'k', s->tenant, s->owner, s->carrier, s->carrier_key);
    map_put(&s->home->names, s->key_by_key, s);
}

void session_links_are_known(struct session *s)
{
    s->links_known = true;
    enter_key(s);
}

/* mem, id, handle, tenant, owner and carrier are set.  MCP lookups use keys, and need links. */
void session_enter_cache(struct session *s)
{
    struct sessions *home = s->home;
    s->key_by_id = sessions_key(s->mem, 'i', s->tenant, STR_NONE, s->id, STR_NONE);
    s->key_by_handle = sessions_key(s->mem, 'h', s->tenant, STR_NONE, s->handle, STR_NONE);
    s->link_key = arena_printf(s->mem, "s:%.*s", STR_ARG(s->id));
    s->owner_key = arena_printf(s->mem, "o:%.*s/%.*s", STR_ARG(s->tenant), STR_ARG(s->owner));
    map_put(&home->names, s->key_by_id, s);
    map_put(&home->names, s->key_by_handle, s);
    if (s->links_known)
        enter_key(s);
    home->n_sessions++;
}

void session_forget(struct session *s)
{
    sessions_changed(s->home, s->id);
    forget_names(s);
}

static size_t changed_slot(struct str id)
{
    return map_hash(id) & (CHANGED_SLOTS - 1);
}

void sessions_changed(struct sessions *s, struct str id)
{
    s->changed[changed_slot(id)] = ++s->changes;
}

uint64_t sessions_changes(const struct sessions *s)
{
    return s->changes;
}

bool sessions_changed_since(const struct sessions *s, struct str id, uint64_t since)
{
    return s->changed[changed_slot(id)] > since;
}

struct session *sessions_by_id(struct sessions *s, struct str tenant, struct str id)
{
    char room[KEY_ROOM];
    struct str key = sessions_key_in(room, sizeof(room), 'i', tenant, STR_NONE, id, STR_NONE);
    return key.p ? map_get(&s->names, key) : NULL;
}

void sessions_ended(struct sessions *home, struct str tenant, struct str id)
{
    struct session *s = sessions_by_id(home, tenant, id);

    sessions_changed(home, id);
    if (!s)
        return;
    session_ref(s);
    session_forget(s);
    session_unref(s);
}

struct session *session_new(struct sessions *home, const struct session_new_args *args)
{
    struct session *s = xcalloc(1, sizeof(*s));
    char id[UUID_TEXT], handle[HANDLE_LENGTH + 1];

    s->home = home;
    s->refs = 1;
    s->mem =
        session_arena(args->who->tenant, args->who->owner, args->carrier_key, args->client_name);
    list_init(&s->lru);
    random_uuid7(id);
    token_handle(handle);
    s->id = arena_dup(s->mem, str_of(id));
    s->handle = arena_dup(s->mem, str_of(handle));
    s->tenant = arena_dup(s->mem, args->who->tenant);
    s->owner = arena_dup(s->mem, args->who->owner);
    s->carrier = arena_dup(s->mem, args->carrier);
    s->carrier_key = arena_dup(s->mem, args->carrier_key);
    s->client_name = arena_dup(s->mem, args->client_name);
    s->client_version = arena_dup(s->mem, args->client_version);
    s->client_type = client_type_of(args->client_name);
    s->origin = args->origin;
    s->links_known = true; /* it has none */
    s->provisional = args->provisional;
    s->counted = args->counted;
    if (args->context_mac)
        session_expect_context(s, args->context_mac);
    s->created_ms = s->last_used_ms = clock_life_ms();
    s->expires_ms = s->created_ms + (args->provisional ? SESSION_PROVISIONAL_MS : args->life_ms);
    session_enter_cache(s);
    return s;
}

/* The client type that a client's name implies. */
struct str client_type_of(struct str name)
{
    static const struct {
        const char *part;
        struct str type;
    } table[] = {
        {"claude-code", {"claude-code", 11}},
        {"vscode", {"ide", 3}},
        {"visual studio", {"ide", 3}},
        {"cursor", {"ide", 3}},
        {"jetbrains", {"ide", 3}},
        {"windsurf", {"ide", 3}},
        {"zed", {"ide", 3}},
        {"codex", {"cli", 3}},
        {"-cli", {"cli", 3}},
        {"agent", {"agent", 5}},
    };
    char lower[64];
    size_t n = name.n < sizeof(lower) - 1 ? name.n : sizeof(lower) - 1;

    for (size_t i = 0; i < n; i++)
        lower[i] = (char)(name.p[i] >= 'A' && name.p[i] <= 'Z' ? name.p[i] + 32 : name.p[i]);
    lower[n] = '\0';
    for (size_t i = 0; i < countof(table); i++)
        if (strstr(lower, table[i].part))
            return table[i].type;
    return STR_NONE;
}

void session_fill_row(const struct session *s, struct session_row *ret)
{
    *ret = (struct session_row){
        .id = s->id,
        .handle = s->handle,
        .tenant = s->tenant,
        .owner = s->owner,
        .edge_mcp_id = s->home->node,
        .client_name = s->client_name,
        .client_type = s->client_type,
        .client_version = s->client_version,
        .status = SESSION_ACTIVE,
        .origin = s->origin,
        .initialized = true,
        .provisional = s->provisional,
        .counted = s->counted,
        .carrier = s->carrier,
        .carrier_key = s->carrier_key,
        .toolsets = s->toolsets,
        .setup = s->setup,
        .lineage = s->lineage,
        .sealed_context = s->context ? s->context->sealed : STR_NONE,
        .created_ms = s->created_ms,
        .last_activity_ms = s->last_used_ms,
        .expires_ms = s->expires_ms,
        .ttl_ms = s->ttl_ms,
        .version = 1,
    };
}

static void used_at(struct session *s, int64_t at_ms)
{
    int64_t moved = at_ms - s->last_used_ms;
    int64_t cap = s->created_ms + SESSION_LIFE_MAX_MS;

    if (moved <= 0)
        return;
    s->last_used_ms = at_ms;
    if (s->ttl_ms || !s->expires_ms || s->expires_ms >= cap)
        return;
    s->expires_ms = s->expires_ms + moved < cap ? s->expires_ms + moved : cap;
}

void session_used(struct session *s)
{
    used_at(s, clock_life_ms());
}

void sessions_set_read_your_writes(struct sessions *s, struct read_your_writes *writes)
{
    s->writes = writes;
}

void session_name_slots(struct session *s)
{
    struct touch_scope scope = {s->tenant, s->owner};

    if (s->is_named)
        return;
    s->handle_slots = touch_slots_of(scope, s->handle);
    s->id_slots = touch_slots_of(scope, s->id);
    s->is_named = true;
}

void session_touch(struct session *s)
{
    if (!s->home->writes || !read_your_writes_move_mark(s->home->writes, &s->touch_mark))
        return;
    session_name_slots(s);
    read_your_writes_touch(s->home->writes, s->handle_slots, true);
    read_your_writes_touch(s->home->writes, s->id_slots, true);
}

void sessions_moved(struct sessions *home, struct str tenant, struct str id,
                    const struct session_row *to)
{
    struct session *s = sessions_by_id(home, tenant, id);

    if (to->expires_ms)
        sessions_changed(home, id);
    if (!s)
        return;
    used_at(s, to->last_activity_ms);
    if (to->expires_ms) {
        s->expires_ms = to->expires_ms;
        s->ttl_ms = to->ttl_ms;
    }
}

static void replace_text(struct str *text, struct str by)
{
    char *copy = by.p ? xcalloc(1, by.n + 1) : NULL;

    if (copy)
        memcpy(copy, by.p, by.n);
    free((char *)text->p); /* only now: `by` may point into it */
    *text = copy ? str_n(copy, by.n) : STR_NONE;
}

void session_take_toolsets(struct session *s, struct str toolsets)
{
    replace_text(&s->toolsets, toolsets);
}

void session_take_setup(struct session *s, struct str setup)
{
    replace_text(&s->setup, setup);
    session_setup_free(s->rules);
    s->rules = s->setup.p ? session_setup_new(s->setup) : NULL;
    if (s->setup.p && !s->rules)
        log_warn("the set-up of a session cannot be read, so it has no effect",
                 LS("session", s->id));
}

void session_first_free(struct session_first *f)
{
    if (!f)
        return;
    free((char *)f->context.p);
    free((char *)f->metadata.p);
    free(f);
}

void session_begin_with(struct session *s, int64_t ttl_ms, struct str context, struct str metadata)
{
    if (ttl_ms) {
        s->ttl_ms = ttl_ms;
        s->expires_ms = s->provisional ? s->expires_ms : s->created_ms + ttl_ms;
    }
    if (!context.p && !metadata.p)
        return;
    s->first = xcalloc(1, sizeof(*s->first));
    random_uuid7(s->first->context_id);
    replace_text(&s->first->context, context);
    replace_text(&s->first->metadata, metadata);
}

void sessions_setup_changed(struct sessions *home, struct str tenant, struct str id,
                            struct str setup)
{
    struct session *s = sessions_by_id(home, tenant, id);

    sessions_changed(home, id);
    if (s)
        session_take_setup(s, setup);
}

static void toolsets_move(struct session *s)
{
    s->toolset_move = ++s->home->toolset_moves;
}

void session_change_toolsets(struct session *s, struct str toolsets)
{
    session_take_toolsets(s, toolsets);
    s->toolset_writes++;
    toolsets_move(s);
}

void session_toolsets_write_done(struct session *s)
{
    s->toolset_writes--;
    toolsets_move(s);
}

uint64_t sessions_toolset_moves(const struct sessions *s)
{
    return s->toolset_moves;
}

bool session_toolsets_moved(const struct session *s, uint64_t since)
{
    return s->toolset_writes || s->toolset_move > since;
}

void session_expect_context(struct session *s, const uint8_t mac[32])
{
    s->context = arena_new_of(s->mem, struct session_context);
    memcpy(s->context->mac, mac, sizeof(s->context->mac));
}

void session_seal_context(struct session *s, struct str sealed)
{
    if (!s->context->sealed.p)
        s->context->sealed = arena_dup(s->mem, sealed);
}

/* An unreadable label gets a zero MAC, which matches no context: a client that sends one is
 * refused. */
void session_load_context(struct session *s, struct str sealed)
{
    struct arena *mem;
    struct str keys;

    if (!sealed.p)
        return;
    mem = arena_new(1024 * 1024);
    s->context = arena_new_of(s->mem, struct session_context);
    if (!profile_context_read_label(sealed, mem, &keys, s->context->mac))
        memset(s->context->mac, 0, sizeof(s->context->mac));
    s->context->sealed = arena_dup(s->mem, sealed);
    arena_free(mem);
}

void session_take_sealed(struct session *s, struct str sealed_auth)
{
    free((char *)s->sealed_auth.p);
    s->sealed_auth = STR_NONE;
    if (sealed_auth.p)
        s->sealed_auth = str_n(strndup(sealed_auth.p, sealed_auth.n), sealed_auth.n);
}

void sessions_sealed(struct sessions *home, struct str tenant, struct str id,
                     struct str sealed_auth)
{
    struct session *s = sessions_by_id(home, tenant, id);
    char key[64];

    sessions_changed(home, id);
    if (s && str_eq(s->sealed_auth, sealed_auth))
        return; /* no change: its links use these credentials */
    if (s)
        session_take_sealed(s, sealed_auth);
    int n = snprintf(key, sizeof(key), "s:%.*s", STR_ARG(id));
    if (home->on_sealed)
        home->on_sealed(home->on_sealed_arg, str_n(key, (size_t)n));
}

void sessions_core_changed(struct sessions *home, struct str tenant, struct str id)
{
    struct session *s = sessions_by_id(home, tenant, id);

    sessions_changed(home, id);
    if (s)
        s->has_core = true;
}

void sessions_on_sealed(struct sessions *s, void (*fn)(void *arg, struct str link_key), void *arg)
{
    s->on_sealed = fn;
    s->on_sealed_arg = arg;
}

struct principal session_owner(const struct session *s)
{
    return (struct principal){.tenant = s->tenant, .owner = s->owner, .role = ROLE_MEMBER};
}

bool session_is_over(const struct session *s, int64_t now_ms)
{
    return s->ended || (s->expires_ms && now_ms >= s->expires_ms);
}

struct transport *transport_new(struct sessions *home, const struct transport_row *row)
{
    struct transport *t = xcalloc(1, sizeof(*t));
    t->home = home;
    t->refs = 1;
    t->mem = arena_new_for(RESIDENT_BYTES,
                           2 * (row->tenant.n + row->owner.n) + row->endpoint.n +
                               row->initialize_params.n + sizeof(t->id_hash) + 8,
                           5);
    list_init(&t->lru);
    memcpy(t->id_hash, row->id_hash, sizeof(t->id_hash));
    hex_encode(t->id_hash, 4, t->shown);
    t->tenant = arena_dup(t->mem, row->tenant);
    t->owner = arena_dup(t->mem, row->owner);
    t->endpoint = arena_dup(t->mem, row->endpoint);
    t->initialize_params = arena_dup(t->mem, row->initialize_params);
    t->version = mcp_version_negotiate(row->protocol_version);
    t->last_used_ms = t->touched_ms = row->last_used_ms;
    t->key = sessions_key(t->mem, 't', t->tenant, t->owner,
                          str_n((const char *)t->id_hash, sizeof(t->id_hash)), STR_NONE);
    map_put(&home->names, t->key, t);
    home->n_transports++;
    live_used(home, t);
    return t;
}

struct transport *sessions_transport(struct sessions *s, struct str tenant, struct str owner,
                                     const uint8_t id_hash[32])
{
    struct arena *mem = arena_new(4096);
    struct str hash = str_n((const char *)id_hash, 32);
    struct transport *t = map_get(&s->names, sessions_key(mem, 't', tenant, owner, hash, STR_NONE));

    arena_free(mem);
    return t;
}

void transport_fill_row(const struct transport *t, struct transport_row *ret)
{
    *ret = (struct transport_row){
        .tenant = t->tenant,
        .owner = t->owner,
        .session_id = t->session ? t->session->id : STR_NONE,
        .last_used_ms = t->last_used_ms,
    };
    memcpy(ret->id_hash, t->id_hash, sizeof(ret->id_hash));
}

void transport_link(struct transport *t, struct session *session)
{
    session_ref(session);
    session_unref(t->session);
    t->session = session;
    t->link_stored = false;
}

void transport_forget(struct transport *t)
{
    if (t->key.p && map_get(&t->home->names, t->key) == t)
        map_remove(&t->home->names, t->key);
    t->key = STR_NONE;
    t->ended = true;
}

void transport_ended(struct transport *t)
{
    live_ended(t->home, t->id_hash);
    transport_forget(t);
}

struct touch {
    struct write_job job;
    struct store_op op;
    struct transport_row row;
    struct principal who;
    struct arena *mem;
};

static void touch_done(struct write_job *job)
{
    struct touch *touch = container_of(job, struct touch, job);
    arena_free(touch->mem);
    free(touch);
}

void transport_write(struct sessions *home, enum op_kind kind, struct str tenant, struct str owner,
                     const uint8_t id_hash[32], int64_t at_ms)
{
    struct touch *touch = xcalloc(1, sizeof(*touch));
    touch->mem = arena_new(4096);
    touch->who.tenant = arena_dup(touch->mem, tenant);
    touch->who.owner = arena_dup(touch->mem, owner);
    memcpy(touch->row.id_hash, id_hash, sizeof(touch->row.id_hash));
    touch->row.last_used_ms = touch->row.ended_ms = at_ms;
    touch->op = (struct store_op){.kind = kind, .who = &touch->who, .transport = &touch->row};
    touch->job = (struct write_job){.ops = &touch->op, .n = 1, .done = touch_done};
    if (!lane_write(home->lanes, &touch->job))
        touch_done(&touch->job);
}

void transport_used(struct transport *t)
{
    t->last_used_ms = clock_life_ms();
    if (t->last_used_ms - t->touched_ms < TOUCH_EVERY_MS)
        return;
    t->touched_ms = t->last_used_ms;
    live_used(t->home, t);
    transport_write(t->home, OP_TRANSPORT_TOUCH, t->tenant, t->owner, t->id_hash, t->last_used_ms);
}

bool transport_is_over(const struct transport *t, int64_t now_ms)
{
    return t->ended || now_ms - t->last_used_ms >= TRANSPORT_IDLE_END_MS;
}

struct session_link *session_link_of(struct session *s, struct str server)
{
    for (struct session_link *l = s->links; l; l = l->next)
        if (str_eq(l->server, server))
            return l;
    return NULL;
}

struct session_link *session_add_link(struct session *s, struct str server)
{
    struct session_link *l = arena_new_of(s->mem, struct session_link);
    l->server = arena_dup(s->mem, server);
    l->next = s->links;
    s->links = l;
    return l;
}

void session_link_take_resume(struct session_link *l, struct str resume)
{
    char *copy = resume.p ? strndup(resume.p, resume.n) : NULL;

    free((char *)l->resume.p);
    l->resume = copy ? str_n(copy, resume.n) : STR_NONE;
}

/* If nodes share the store, the earlier process may be another running node. */
static const char *reason_of(const struct session *s, const struct session_link *l,
                             const struct link_seen *seen)
{
    return l->is_old && !s->home->is_shared ? "holdfast_restarted" : seen->reason;
}

enum link_change session_note_link(struct session *s, struct str server,
                                   const struct link_seen *seen)
{
    struct session_link *l = session_link_of(s, server);
    bool first = !l;

    if (first)
        l = session_add_link(s, server);
    else if (l->generation != seen->generation &&
             !(l->generation == 0 && l->stored && !l->is_old && seen->was_open) &&
             !(seen->resume.p && str_eq(l->resume, seen->resume))) {
        l->reason = reason_of(s, l, seen);
        l->lost = true;
    }
    l->generation = seen->generation;
    l->is_old = false;
    return first ? LINK_FIRST : l->lost ? LINK_STATE_LOST : LINK_SAME;
}

struct link_write {
    struct write_job job;
    struct store_op ops[2];
    struct link_row row;
    struct session_row core;
    struct principal who;
    struct arena *mem;
};

static void link_written(struct write_job *job)
{
    struct link_write *w = container_of(job, struct link_write, job);
    arena_free(w->mem);
    free(w);
}

/* The first server that has its own session sets the core_session_id. */
static void add_core(struct link_write *w, struct session *s)
{
    struct str rest = w->row.remote_id;

    (void)str_split(&rest, ' '); /* the version */
    (void)str_split(&rest, ' '); /* the definition */
    if (!rest.n || rest.n > CORE_ID_MAX || !utf8_is_valid(rest))
        return;
    s->has_core = true;
    w->core = (struct session_row){.id = w->row.session_id, .core_session_id = rest};
    w->ops[w->job.n++] = (struct store_op){.kind = OP_SESSION_PATCH,
                                           .who = &w->who,
                                           .session = &w->core,
                                           .fields = FIELD_CORE_SESSION_ID};
    session_touch(s);
}

void session_keep_resume(struct session *s, struct str server, struct str resume)
{
    struct session_link *l = session_link_of(s, server);
    struct link_write *w;

    if (!l || str_eq(l->resume, resume))
        return;
    session_link_take_resume(l, resume);
    w = xcalloc(1, sizeof(*w));
    w->mem = arena_new(LINK_WRITE_BYTES);
    w->who.tenant = arena_dup(w->mem, s->tenant);
    w->who.owner = arena_dup(w->mem, s->owner);
    w->row = (struct link_row){
        .session_id = arena_dup(w->mem, s->id),
        .server = arena_dup(w->mem, server),
        .writer = s->home->writer,
        .remote_id = arena_dup(w->mem, resume),
        .opened_ms = clock_life_ms(),
    };
    w->ops[0] = (struct store_op){.kind = OP_LINK_PUT, .who = &w->who, .link = &w->row};
    w->job = (struct write_job){.ops = w->ops, .n = 1, .done = link_written};
    if (!s->has_core)
        add_core(w, s);
    if (!lane_write(s->home->lanes, &w->job))
        link_written(&w->job);
}
