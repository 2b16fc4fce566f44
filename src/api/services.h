/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of Holdfast that the API uses.  The gateway owns them and fills this struct once, before
 * a listener opens.  The header names the parts only; a user of one includes the header of that
 * part. */
#ifndef HOLDFAST_API_SERVICES_H
#define HOLDFAST_API_SERVICES_H

#include "base/error.h"
#include "base/str.h"

struct api_services {
    struct front *front; /* has the configuration and the identities */
    struct loop *loop;
    struct lanes *lanes;
    struct logins *logins;
    struct sessions *sessions;
    struct session_gauges *gauges;
    struct registry *registry;
    struct sharing *sharing;
    struct docs *docs;
    struct keyring *keyring;
    struct upstreams *upstreams;
    struct pins *pins;
    struct audit *audit;
    struct replays *replays;       /* NULL inside of a command */
    struct watchers *watchers;     /* NULL inside of a command */
    struct erasures *erasures;     /* NULL inside of a command that only reads */
    struct traces *traces;         /* NULL inside of a command */
    struct sinks *sinks;           /* NULL inside of a command */
    struct export_key *export_key; /* signs exported sessions; NULL: they are not signed */
    unsigned exports, imports;     /* under way */
    /* Why there is no keyring, in a command that changes things; unused otherwise. */
    struct error keyring_err;
    /* A secret of the configuration was set or removed; NULL: nobody uses them here. */
    void (*on_secret_changed)(void *arg);
    void *on_secret_changed_arg;
    struct str database; /* name of the database in use, for people */
    struct str url;      /* "http://127.0.0.1:4653"; absent: no listener but the control socket */
    struct str data_dir;
    int64_t started_ms; /* clock_wall_ms() at the start; 0: inside of a command */
};

#endif
