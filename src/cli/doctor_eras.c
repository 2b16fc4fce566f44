/* SPDX-License-Identifier: Apache-2.0 */
/* Tries the handshake of each server in both eras.  The trials run in a Holdfast of their own with
 * processes of their own, so the running one is not disturbed. */
#include "cli/doctor.h"

#include "cli/trial.h"

#include <stdio.h>

#define ERAS 2
#define AT_ONCE 8 /* servers of one trial */
#define TRIAL_MS 15000

struct doctor_trial {
    const struct server_config *server;
    struct str name;           /* a copy that the process of the trial can read */
    struct trial_server *eras; /* legacy, modern */
};

static const struct {
    enum server_era era;
    const char *name;
} eras[ERAS] = {{ERA_LEGACY, "legacy"}, {ERA_MODERN, "modern"}};

static struct str name_in(const struct server_config *s, size_t era, struct arena *mem)
{
    return arena_printf(mem, "%.40s-%s", s->name.p, eras[era].name);
}

struct trial_of {
    struct doctor *d;
    const struct doctor_trial *list;
    size_t n;
};

/* Each server once per era, in a configuration without anything else.  In the process of the trial:
 * the file is read again there.  The digest differs too, because eras are remembered by it. */
static struct config *make_config(void *arg, struct arena *mem)
{
    const struct trial_of *t = arg;
    struct config *all, *config;
    struct error err;
    size_t n = 0;

    if (!doctor_load(t->d, &all, &err) ||
        !config_parse(STR("{}"), STR_NONE, &(struct config_source){0}, &config, &err))
        return NULL;
    config->servers = arena_zalloc(config->mem, t->n * ERAS * sizeof(*config->servers));
    for (size_t i = 0; i < t->n; i++) {
        const struct server_config *s = config_server(all, arena_dup(mem, t->list[i].name));
        for (size_t e = 0; s && e < ERAS; e++) {
            struct server_config *copy = &config->servers[n++];
            *copy = *s;
            copy->era = eras[e].era;
            copy->name = name_in(s, e, config->mem);
            copy->definition[0] ^= (uint8_t)(e + 1);
        }
    }
    config->n_servers = n;
    return config;
}

static bool try_servers(struct doctor *d, struct doctor_trial *list, size_t n, struct error *err)
{
    struct trial_server *trials = arena_zalloc(d->mem, n * ERAS * sizeof(*trials));
    struct trial_of t = {d, list, n};

    for (size_t i = 0; i < n; i++) {
        list[i].eras = &trials[i * ERAS];
        for (size_t e = 0; e < ERAS; e++)
            list[i].eras[e].name = name_in(list[i].server, e, d->mem);
    }
    return trial_run_servers(d->cli, make_config, &t, TRIAL_MS, trials, n * ERAS, err);
}

static struct str shown(const struct trial_server *t, const char *era, struct arena *mem)
{
    if (!t->ok)
        return arena_printf(mem, "not %s", era);
    return arena_printf(mem, "%s %.*s in %lld ms", era, STR_ARG(t->found.version),
                        (long long)t->found.took_ms);
}

/* The words of a trial, with the name that the server has outside of it. */
static struct str words_of(const struct doctor_trial *t, struct arena *mem)
{
    struct str text = t->eras[0].why, inner = t->eras[0].name, done = STR("");

    while (text.n) {
        const char *at = memmem(text.p, text.n, inner.p, inner.n);
        size_t before = at ? (size_t)(at - text.p) : text.n;
        done = arena_printf(mem, "%.*s%.*s%.*s", STR_ARG(done), (int)before, text.p,
                            at ? (int)t->name.n : 0, t->name.p);
        text = str_n(text.p + before + (at ? inner.n : 0), text.n - before - (at ? inner.n : 0));
    }
    return done;
}

/* If the running Holdfast has the same trouble, it has said so above. */
static void say_neither(struct doctor *d, const struct doctor_trial *t)
{
    bool runs = d->source.control && !d->source.local;
    struct str words = words_of(t, d->mem);
    struct str fix = arena_printf(d->mem, "`holdfast config show` has its command: start it by "
                                          "hand to see what it prints");

    if (runs && doctor_is_healthy(d, t->name))
        doctor_say(d, DOCTOR_WARNING, "nothing, if the server allows only one process at a time",
                   "%.*s is healthy, but a second one gave no answer: %.*s", STR_ARG(t->name),
                   STR_ARG(words));
    else if (runs)
        doctor_say(d, DOCTOR_FAILURE, fix.p, "%.*s gave a trial no answer in either era",
                   STR_ARG(t->name));
    else
        doctor_say(d, DOCTOR_FAILURE, fix.p, "%.*s gave no answer in either era: %.*s",
                   STR_ARG(t->name), STR_ARG(words));
}

static void say_eras(struct doctor *d, const struct doctor_trial *c)
{
    if (!c->eras[0].ok && !c->eras[1].ok) {
        say_neither(d, c);
        return;
    }
    struct str legacy = shown(&c->eras[0], eras[0].name, d->mem),
               modern = shown(&c->eras[1], eras[1].name, d->mem);
    doctor_say(d, DOCTOR_OK, NULL, "%.*s: %.*s; %.*s", STR_ARG(c->server->name), STR_ARG(legacy),
               STR_ARG(modern));
}

/* A server with sealed secrets or values of a session would be started without them. */
static const char *why_not(const struct server_config *s)
{
    if (s->n_secrets)
        return "its secrets are sealed; its state above says how it is";
    return s->takes_context || s->credential_service.p ? "it takes values of a session" : NULL;
}

void doctor_try_servers(struct doctor *d)
{
    size_t n = 0;

    d->trial_err.code = ERR_NONE;
    if (!d->config || !d->config->n_servers || cli_flag(d->cli, "--no-trial"))
        return;
    d->trials = arena_zalloc(d->mem, d->config->n_servers * sizeof(*d->trials));
    for (size_t i = 0; i < d->config->n_servers; i++)
        if (d->config->servers[i].kind != SERVER_BUILTIN && !why_not(&d->config->servers[i])) {
            d->trials[n].name = arena_dup(d->mem, d->config->servers[i].name);
            d->trials[n++].server = &d->config->servers[i];
        }
    for (size_t at = 0; at < n; at += AT_ONCE) { /* a built-in server needs no trial */
        size_t now = n - at < AT_ONCE ? n - at : AT_ONCE;
        if (!try_servers(d, d->trials + at, now, &d->trial_err))
            return;
        d->n_trials += now;
    }
}

void doctor_eras(struct doctor *d)
{
    for (size_t i = 0; d->config && i < d->config->n_servers; i++) {
        const char *why = why_not(&d->config->servers[i]);
        if (why && !cli_flag(d->cli, "--no-trial"))
            doctor_say(d, DOCTOR_OK, NULL, "%.*s was not tried: %s",
                       STR_ARG(d->config->servers[i].name), why);
    }
    if (d->trial_err.code != ERR_NONE)
        doctor_say(d, DOCTOR_WARNING, "see that the folder TMPDIR has space and can be written",
                   "the servers could not be tried: %s", d->trial_err.text);
    for (size_t i = 0; i < d->n_trials; i++)
        say_eras(d, &d->trials[i]);
}
