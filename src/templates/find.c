/* SPDX-License-Identifier: Apache-2.0 */
#include "templates/find.h"

#include "templates/store/verbs.h"

static bool run_find(struct read_job *job, struct store *store)
{
    struct template_find *f = container_of(job, struct template_find, read);

    if (!store_template(store, f->tenant, f->name, f->version, f->mem, &f->row, &job->err))
        return false;
    if (!f->row)
        return error_set(&job->err, ERR_BAD_INPUT,
                         "there is no template %.*s; see `holdfast templates list`",
                         STR_ARG(f->ref));
    return template_spec_parse(f->row->spec, f->mem, &f->spec, &job->err);
}

static void on_found(struct read_job *job)
{
    struct template_find *f = container_of(job, struct template_find, read);
    struct error why;

    f->ok = job->ok;
    f->err = job->err;
    if (f->ok && !template_spec_check(&f->spec, f->config, f->tenant, &why))
        f->ok = error_set(&f->err, ERR_BAD_INPUT, "the template %.*s cannot be used: %s",
                          STR_ARG(f->ref), why.text);
    f->done(f);
}

bool template_find(struct lanes *lanes, struct template_find *f)
{
    if (!template_ref_parse(f->ref, &f->name, &f->version))
        return error_set(&f->err, ERR_BAD_INPUT,
                         "\"template\" must be the name of a template, or NAME@VERSION");
    f->read = (struct read_job){.run = run_find, .done = on_found};
    return lane_lookup(lanes, &f->read) ||
           error_set(&f->err, ERR_UNAVAILABLE, "too many lookups are waiting; try again shortly");
}
