/* SPDX-License-Identifier: Apache-2.0 */
/* From the sealed texts of a session to its set of known values, and the cache of these sets. */
#include "session/secrets.h"

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "session/bundle.h"
#include "session/profile_context.h"
#include "session/session.h"

#include <stdlib.h>

#define JOB_BYTES (4u * 1024 * 1024)

struct cached_set {
    struct list lru;
    struct str id, auth, context; /* stored after this struct */
    struct known *known;          /* NULL: no secrets, or they do not open */
    int64_t until_ms;             /* monotonic; 0: does not lapse */
    size_t size;
};

struct secrets {
    struct keyring *keyring;
    struct map sets;    /* struct cached_set by session id */
    struct list recent; /* least recently used first */
    size_t size;
};

struct secrets *secrets_new(struct keyring *keyring)
{
    struct secrets *s = xcalloc(1, sizeof(*s));
    s->keyring = keyring;
    map_init(&s->sets);
    list_init(&s->recent);
    return s;
}

static void drop(struct secrets *s, struct cached_set *c)
{
    list_remove(&c->lru);
    map_remove(&s->sets, c->id);
    s->size -= c->size;
    known_unref(c->known);
    free(c);
}

void secrets_free(struct secrets *s)
{
    if (!s)
        return;
    list_each(&s->recent, node) drop(s, list_entry(node, struct cached_set, lru));
    map_release(&s->sets);
    free(s);
}

void secrets_forget(struct secrets *s, struct str session_id)
{
    struct cached_set *c = map_get(&s->sets, session_id);

    if (c)
        drop(s, c);
}

size_t secrets_cached(const struct secrets *s)
{
    return s->sets.n;
}

struct secrets_texts secrets_texts_of(const struct session *s)
{
    return (struct secrets_texts){
        .tenant = s->tenant,
        .session_id = s->id,
        .auth = s->sealed_auth,
        .context = s->context ? s->context->sealed : STR_NONE,
    };
}

static struct str append(char **to, struct str text)
{
    struct str copy = text.p ? str_n(*to, text.n) : STR_NONE;

    if (text.n)
        memcpy(*to, text.p, text.n);
    *to += text.n;
    return copy;
}

static void keep(struct secrets *s, const struct secrets_texts *t, struct known *known,
                 int64_t until_ms)
{
    size_t texts = t->session_id.n + t->auth.n + t->context.n;
    struct cached_set *c = xcalloc(1, sizeof(*c) + texts);
    char *to = (char *)(c + 1);

    secrets_forget(s, t->session_id);
    c->id = append(&to, t->session_id);
    c->auth = append(&to, t->auth);
    c->context = append(&to, t->context);
    c->known = known_ref(known);
    c->until_ms = until_ms;
    c->size = sizeof(*c) + texts + known_size(known);
    list_init(&c->lru);
    list_push(&s->recent, &c->lru);
    map_put(&s->sets, c->id, c);
    s->size += c->size;
    while (s->sets.n > SECRETS_SETS_MAX || s->size > SECRETS_BYTES_MAX)
        drop(s, list_entry(list_first(&s->recent), struct cached_set, lru));
}

/* True: the set of these texts is known. */
static bool find_cached(struct secrets *s, const struct secrets_texts *t, struct known **ret)
{
    struct cached_set *c = map_get(&s->sets, t->session_id);

    if (!c || !str_eq(c->auth, t->auth) || !str_eq(c->context, t->context) ||
        (c->until_ms && clock_mono_ms() >= c->until_ms))
        return false;
    list_remove(&c->lru);
    list_push(&s->recent, &c->lru);
    *ret = known_ref(c->known);
    return true;
}

static void add_secret(void *arg, struct str value, struct str name)
{
    struct secrets_job *j = arg;

    known_add_setting(j->building, value, name);
}

static void add_context(struct secrets_job *j, struct str plain)
{
    struct config_pair *values;
    size_t n = 0;

    if (!profile_context_read(plain, j->mem, &values, &n))
        return;
    for (size_t i = 0; i < n; i++)
        add_secret(j, values[i].value,
                   arena_printf(j->mem, "context %.*s", STR_ARG(values[i].name)));
}

/* Both texts were opened, or the store failed. */
static void finish(struct secrets_job *j)
{
    known_finish(j->building);
    if (j->ok && known_count(j->building))
        j->known = known_ref(j->building);
    if (j->ok && j->is_sealed)
        log_warn("stored secrets of a session cannot be opened, so records do not replace them",
                 LS("session", j->texts.session_id), LS("tenant", j->texts.tenant));
    if (j->ok)
        keep(j->home, &j->texts, j->known, j->is_sealed ? clock_mono_ms() + SECRETS_RETRY_MS : 0);
    known_unref(j->building);
    arena_free(j->mem); /* with the plain texts */
}

static void take_opened(struct secrets_job *j)
{
    const struct keyring_job *open = &j->open;

    if (!open->ok && open->err.code != ERR_SEALED) {
        j->ok = false;
        j->err = open->err;
    } else if (!open->ok) {
        j->is_sealed = true;
    } else if (j->is_context) {
        add_context(j, open->result);
    } else {
        j->is_sealed |= !bundle_each_secret(open->result, j->mem, add_secret, j);
    }
}

static void on_opened(struct keyring_job *open);

/* Opens one text.  Returns false when on_opened() will be called. */
static bool open_text(struct secrets_job *j, struct str sealed, const char *field)
{
    if (!sealed.p || !j->ok)
        return true;
    j->open = (struct keyring_job){
        .place = {j->texts.tenant, j->texts.session_id, str_of(field)},
        .sealed = sealed,
        .is_quiet = true, /* counted when a server should get the credential */
        .mem = j->mem,
        .done = on_opened,
        .user = j,
    };
    if (!keyring_open(j->home->keyring, &j->open))
        return false;
    take_opened(j);
    return true;
}

static bool open_context(struct secrets_job *j)
{
    j->is_context = true;
    if (!open_text(j, j->texts.context, SEALED_FIELD_CONTEXT))
        return false;
    finish(j);
    return true;
}

static void on_opened(struct keyring_job *open)
{
    struct secrets_job *j = open->user;

    take_opened(j);
    if (j->is_context)
        finish(j);
    else if (!open_context(j))
        return;
    j->done(j);
}

bool secrets_find(struct secrets *s, const struct secrets_texts *t, struct secrets_job *j)
{
    j->home = s;
    j->ok = true;
    j->known = NULL;
    j->is_context = j->is_sealed = false;
    if ((!t->auth.p && !t->context.p) || find_cached(s, t, &j->known))
        return true;
    j->mem = arena_new(JOB_BYTES);
    arena_wipe_later(j->mem);
    j->texts = (struct secrets_texts){
        .tenant = arena_dup(j->mem, t->tenant),
        .session_id = arena_dup(j->mem, t->session_id),
        .auth = arena_dup(j->mem, t->auth),
        .context = arena_dup(j->mem, t->context),
    };
    j->building = known_new(false);
    return open_text(j, j->texts.auth, SEALED_FIELD_AUTH) && open_context(j);
}
