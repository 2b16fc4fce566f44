/* SPDX-License-Identifier: Apache-2.0 */
/* The folders that are served: opened for a configuration, shared with later configurations, and
 * visible to the principals that may use them. */
#include "docs/docs_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "identity/scopes.h"

#include <stdlib.h>

#define NAMES_SHOWN 250 /* bytes of folder names in a refusal; the last name may exceed them */

struct open_folder *open_folder_of(const struct docs_folder *f)
{
    return container_of(f, struct open_folder, shown);
}

void folder_ref(struct open_folder *f)
{
    f->refs++;
}

void folder_unref(struct open_folder *f)
{
    if (--f->refs > 0)
        return;
    vault_close(f->shown.vault);
    arena_free(f->mem);
    free(f);
}

void set_ref(struct docs_set *s)
{
    s->refs++;
}

void set_unref(struct docs_set *s)
{
    if (!s || --s->refs > 0)
        return;
    for (size_t i = 0; i < s->n; i++)
        folder_unref(s->folders[i]);
    free(s->folders);
    free(s);
}

bool folder_is_for(const struct open_folder *f, const struct principal *who)
{
    bool is_theirs = f->n_tenants == 0;

    for (size_t i = 0; i < f->n_tenants && !is_theirs; i++)
        is_theirs = str_eq(f->tenants[i], who->tenant);
    return is_theirs && principal_may_use_folder(who, f->shown.name);
}

static struct open_folder *find(const struct docs_set *s, struct str name)
{
    for (size_t i = 0; s && i < s->n; i++)
        if (str_eq(s->folders[i]->shown.name, name))
            return s->folders[i];
    return NULL;
}

static bool is_same(const struct open_folder *f, const struct folder_config *c)
{
    bool same = str_eq(f->root, c->path) && (int)f->shown.agent == c->agent &&
                f->shown.history_max == (int64_t)c->history &&
                f->shown.history_keep_ms == c->history_keep_ms && f->n_tenants == c->n_tenants;

    for (size_t i = 0; i < c->n_tenants && same; i++)
        same = str_eq(f->tenants[i], c->tenants[i]);
    return same;
}

/* NULL: the folder cannot be opened.  The log says so unless `was_logged`. */
static struct open_folder *folder_open(struct docs *d, const struct folder_config *c,
                                       bool was_logged)
{
    struct open_folder *f;
    struct vault *vault;
    struct error err;

    if (!vault_open(c->path, &vault, &err)) {
        if (!was_logged)
            log_error("a folder of documents cannot be served", LS("folder", c->name),
                      LZ("why", err.text));
        return NULL;
    }
    f = xcalloc(1, sizeof(*f));
    f->refs = 1;
    f->home = d;
    f->mem = arena_new(1 << 20);
    f->shown = (struct docs_folder){.name = arena_dup(f->mem, c->name),
                                    .agent = (enum docs_agent)c->agent,
                                    .history_max = (int64_t)c->history,
                                    .history_keep_ms = c->history_keep_ms,
                                    .vault = vault};
    f->root = arena_dup(f->mem, c->path);
    f->n_tenants = c->n_tenants;
    f->tenants = arena_zalloc(f->mem, (c->n_tenants + 1) * sizeof(*f->tenants));
    for (size_t i = 0; i < c->n_tenants; i++)
        f->tenants[i] = arena_dup(f->mem, c->tenants[i]);
    return f;
}

static struct docs_set *set_new(struct docs *d, const struct config *config)
{
    struct docs_set *s = xcalloc(1, sizeof(*s));

    s->refs = 1;
    s->home = d;
    s->folders = xcalloc(config->n_folders + 1, sizeof(struct open_folder *));
    for (size_t i = 0; i < config->n_folders; i++) {
        struct open_folder *f = find(d->set, config->folders[i].name);
        if (f && is_same(f, &config->folders[i]))
            folder_ref(f);
        else
            f = folder_open(d, &config->folders[i], false);
        if (f)
            s->folders[s->n++] = f;
    }
    return s;
}

static bool open_index(struct docs *d)
{
    struct arena *mem = arena_new(1 << 16);
    struct error err;
    bool ok = index_open(arena_printf(mem, "%.*s/docs-index.db", STR_ARG(d->start.data_dir)),
                         &d->index, &err);

    if (!ok)
        log_error("documents cannot be indexed; search and links find nothing",
                  LZ("why", err.text));
    arena_free(mem);
    return ok;
}

/* Watches a new folder, and starts its recovery and then its indexing. */
static void folder_began(struct docs *d, struct open_folder *f)
{
    f->is_current = true;
    keep_watch(f);
    recover_folder(d, f);
    keep_folder(d, f);
}

static void folder_ended(struct docs *d, struct open_folder *f)
{
    f->is_current = false;
    keep_unwatch(f);
    keep_forget(d, f);
}

void docs_apply(struct docs *d, const struct config *config)
{
    struct docs_set *old = d->set, *fresh;

    if (config->n_folders > 0)
        docs_wake(d);
    if (config->n_folders > 0 && !d->index)
        (void)open_index(d);
    fresh = set_new(d, config);
    d->set = fresh;
    for (size_t i = 0; old && i < old->n; i++)
        if (find(fresh, old->folders[i]->shown.name) != old->folders[i])
            folder_ended(d, old->folders[i]);
    for (size_t i = 0; i < fresh->n; i++)
        if (!fresh->folders[i]->is_current)
            folder_began(d, fresh->folders[i]);
    set_unref(old);
    age_apply(d, config);
}

/* Replaces one folder in the newest set. */
static void set_replace(struct docs *d, struct open_folder *old, struct open_folder *fresh)
{
    struct docs_set *before = d->set, *s = xcalloc(1, sizeof(*s));

    s->refs = 1;
    s->home = d;
    s->n = before->n;
    s->folders = xcalloc(s->n + 1, sizeof(struct open_folder *));
    for (size_t i = 0; i < s->n; i++) {
        s->folders[i] = before->folders[i] == old ? fresh : before->folders[i];
        if (s->folders[i] != fresh)
            folder_ref(s->folders[i]);
    }
    d->set = s;
    folder_ended(d, old);
    folder_began(d, fresh);
    set_unref(before);
}

/* The folder's path leads to another directory now: opens that one.  If the path is missing, the
 * log says so once. */
static void folder_reopen(struct docs *d, struct open_folder *f)
{
    struct folder_config c = {.name = f->shown.name,
                              .path = f->root,
                              .agent = (int)f->shown.agent,
                              .history = (size_t)f->shown.history_max,
                              .history_keep_ms = f->shown.history_keep_ms,
                              .tenants = f->tenants,
                              .n_tenants = f->n_tenants};
    struct open_folder *fresh;

    fresh = folder_open(d, &c, f->is_lost);
    f->is_lost = !fresh;
    if (!fresh)
        return;
    log_warn("a folder of documents was replaced on disk; the one at its path is served now",
             LS("folder", c.name), LS("path", c.path));
    fresh->replaced_ms = clock_wall_ms();
    set_replace(d, f, fresh);
}

struct root_check {
    struct worker_job job;
    struct docs_set *set;
};

static void run_check(struct worker_job *job)
{
    struct root_check *check = container_of(job, struct root_check, job);
    struct error ignored;

    for (size_t i = 0; i < check->set->n; i++)
        (void)!vault_is_current(check->set->folders[i]->shown.vault, &ignored);
}

static void on_check(struct worker_job *job, bool ran unused_arg)
{
    struct root_check *check = container_of(job, struct root_check, job);
    struct docs_set *s = check->set;
    struct docs *d = s->home;

    d->checking = false;
    for (size_t i = 0; i < s->n && !d->stopping; i++) {
        struct open_folder *f = s->folders[i];
        if (f->is_current && vault_is_lost(f->shown.vault))
            folder_reopen(d, f);
        else
            f->is_lost = false;
    }
    set_unref(s);
    free(check);
}

void set_check(struct docs *d)
{
    struct root_check *check;

    if (d->checking || d->stopping || !d->set || !d->find)
        return;
    check = xcalloc(1, sizeof(*check));
    check->job = (struct worker_job){.run = run_check, .done = on_check};
    check->set = d->set;
    set_ref(check->set);
    d->checking = true;
    if (!worker_submit(pool_worker(d->find), &check->job))
        on_check(&check->job, false);
}

bool docs_any(const struct docs *d)
{
    return d->set && d->set->n > 0;
}

const char *docs_state_name(enum docs_state state)
{
    static const char *const names[] = {
        [DOCS_SERVED] = "served", [DOCS_LOST] = "lost", [DOCS_UNAVAILABLE] = "unavailable"};
    return names[state];
}

void docs_each_state(const struct docs *d, const struct config *config,
                     void (*fn)(void *arg, const struct docs_folder_state *s), void *arg)
{
    for (size_t i = 0; i < config->n_folders; i++) {
        const struct open_folder *f = find(d->set, config->folders[i].name);
        struct docs_folder_state s = {.name = config->folders[i].name,
                                      .state = !f                              ? DOCS_UNAVAILABLE
                                               : vault_is_lost(f->shown.vault) ? DOCS_LOST
                                                                               : DOCS_SERVED,
                                      .replaced_ms = f ? f->replaced_ms : 0};
        fn(arg, &s);
    }
}

enum docs_agent docs_most(const struct docs *d, const struct principal *who)
{
    enum docs_agent most = AGENT_READ;

    for (size_t i = 0; d->set && i < d->set->n; i++)
        if (folder_is_for(d->set->folders[i], who) && d->set->folders[i]->shown.agent > most)
            most = d->set->folders[i]->shown.agent;
    return who->scopes && who->scopes->read_only ? AGENT_READ : most;
}

void docs_begin(struct docs *d, struct docs_call *call)
{
    call->home = d;
    call->set = d->set;
    set_ref(call->set);
}

void docs_end(struct docs_call *call)
{
    set_unref(call->set);
    call->set = NULL;
}

size_t docs_visible(const struct docs_call *call, const struct docs_folder ***ret)
{
    const struct docs_set *s = call->set;
    size_t n = 0;

    *ret = arena_zalloc(call->mem, (s->n + 1) * sizeof(**ret));
    for (size_t i = 0; i < s->n; i++)
        if (folder_is_for(s->folders[i], call->who))
            (*ret)[n++] = &s->folders[i]->shown;
    return n;
}

const struct docs_folder *docs_folder(const struct docs_call *call, struct str name)
{
    struct open_folder *f = find(call->set, name);
    return f && folder_is_for(f, call->who) ? &f->shown : NULL;
}

struct index *docs_index(const struct docs_call *call)
{
    return call->home->index;
}

/* The error for a key that is limited to folders, about all other folders. */
void docs_denied(const struct docs_call *call, struct error *err)
{
    const struct docs_folder **folders;
    size_t n = docs_visible(call, &folders), shown = 0;
    struct buf names;

    buf_init(&names, 400);
    for (size_t i = 0; i < n && names.n <= NAMES_SHOWN; i++, shown++)
        buf_addf(&names, "%s'%.*s'", i ? ", " : "", STR_ARG(folders[i]->name));
    if (shown < n)
        buf_addf(&names, " and %zu more", n - shown);
    if (n)
        error_set(
            err, ERR_NOT_FOUND,
            "Access denied: this key only has access to %.*s. Use a path that begins with %s.",
            (int)names.n, names.p, n > 1 ? "one of them" : "it");
    else
        error_set(err, ERR_NOT_FOUND,
                  "Access denied: this key only has access to folders that do not exist. Ask for a "
                  "key to existing folders.");
    buf_release(&names);
}

bool docs_resolve(struct docs *d, struct docs_call *call, struct str file_path, struct error *err)
{
    const char *slash = file_path.n ? memchr(file_path.p, '/', file_path.n) : NULL;
    struct str name = str_n(file_path.p, slash ? (size_t)(slash - file_path.p) : file_path.n);
    struct error why;

    docs_begin(d, call);
    call->place.folder = docs_folder(call, name);
    if (!call->place.folder && call->who->scopes && call->who->scopes->n_folders > 0) {
        docs_denied(call, err);
    } else if (!call->place.folder || !slash) {
        error_set(err, ERR_NOT_FOUND, "Error: Document not found: %.*s", STR_ARG(file_path));
    } else {
        call->place.path =
            arena_dup(call->mem, str_n(slash + 1, file_path.n - (size_t)(slash + 1 - file_path.p)));
        if (vault_path_check(call->place.path, &why))
            return true;
        error_set(err, ERR_NOT_FOUND, "Error: Document not found: %.*s", STR_ARG(file_path));
    }
    docs_end(call);
    return false;
}
