/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast doctor: a table of checks, each of which adds findings.  A check looks and changes
 * nothing, and no check waits longer than a few seconds. */
#ifndef HOLDFAST_CLI_DOCTOR_H
#define HOLDFAST_CLI_DOCTOR_H

#include "cli/our_entry.h"
#include "cli/source.h"

enum doctor_level { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_FAILURE };

struct doctor_finding {
    enum doctor_level level;
    const char *check;
    struct str what; /* what was found */
    struct str fix;  /* what to do; absent when all is well */
};
#define DOCTOR_FINDINGS_MAX 512

struct doctor {
    struct cli *cli;
    struct arena *mem;
    struct source source; /* control NULL: nothing answers */
    struct error source_err;
    struct config *config; /* NULL: it cannot be loaded, see config_err */
    struct error config_err;
    struct doctor_trial *trials; /* doctor_eras.c */
    size_t n_trials;
    struct error trial_err;    /* ERR_NONE: they were tried */
    struct our_addresses ours; /* doctor_clients.c */
    const char *check;         /* the one that runs */
    struct doctor_finding found[DOCTOR_FINDINGS_MAX];
    size_t n;
};

/* One sentence each, without secrets.  `fix` is NULL or says what to do next. */
void doctor_say(struct doctor *d, enum doctor_level level, const char *fix, const char *fmt, ...)
    printf_like(4, 5);

struct doctor_check {
    const char *name;
    const char *looks_at; /* for the reference */
    void (*run)(struct doctor *d);
};
extern const struct doctor_check doctor_checks[]; /* a NULL name ends the list */

/* Reads the configuration that `holdfast up` would read. */
must_check bool doctor_load(const struct doctor *d, struct config **ret, struct error *err);

/* doctor_machine.c */
void doctor_port(struct doctor *d);
void doctor_path(struct doctor *d);
void doctor_disk(struct doctor *d);
void doctor_limits(struct doctor *d);
/* doctor_store.c */
void doctor_store(struct doctor *d); /* latency, size, WAL */
void doctor_clock(struct doctor *d); /* against the newest event */
void doctor_schema(struct doctor *d);
void doctor_keys(struct doctor *d);
void doctor_redis(struct doctor *d);
/* Records in the data directory that the key files were backed up now. */
must_check bool doctor_keys_backed_up(struct str data_dir, struct arena *mem, struct error *err);
/* doctor_servers.c */
void doctor_config(struct doctor *d);
void doctor_servers(struct doctor *d);
bool doctor_is_healthy(struct doctor *d, struct str server); /* in the running Holdfast */
/* doctor_eras.c */
/* Before the source is opened: the trial forks, and an open source may have threads. */
void doctor_try_servers(struct doctor *d);
void doctor_eras(struct doctor *d); /* says what the trial found */
/* doctor_seen.c: what is on record */
void doctor_sessions(struct doctor *d);
void doctor_clients_seen(struct doctor *d);
/* doctor_sinks.c */
void doctor_sinks(struct doctor *d);
/* doctor_clients.c */
void doctor_clients(struct doctor *d);
/* doctor_network.c */
void doctor_certificate(struct doctor *d);
void doctor_proxy(struct doctor *d);
/* doctor_bundle.c: writes FILE (tar, gzip) for a report of a problem, without secrets. */
must_check bool doctor_bundle(struct doctor *d, struct str findings_json, const char *file,
                              struct error *err);

#endif
