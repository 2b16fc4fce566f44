/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the template for a session that is about to be created, and checks it against the
 * configuration of now. */
#ifndef HOLDFAST_TEMPLATES_FIND_H
#define HOLDFAST_TEMPLATES_FIND_H

#include "store/lanes.h"
#include "templates/spec.h"

struct template_find {
    /* Input; the spans live until `done`. */
    struct str tenant, ref; /* "name" or "name@3" */
    const struct config *config;
    struct arena *mem;                     /* for the results */
    void (*done)(struct template_find *f); /* on the loop */
    void *user;
    /* Results.  ok false: there is none, or it names what the configuration does not have. */
    bool ok;
    struct error err;
    struct template_row *row;
    struct template_spec spec;
    /* private */
    struct str name;
    int64_t version;
    struct read_job read;
};
/* Returns false with f->err set when nothing was asked; `done` is not called then. */
must_check bool template_find(struct lanes *lanes, struct template_find *f);

#endif
