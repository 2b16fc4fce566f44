/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes the texts of old revisions, at every session.cleanup.interval.  A run goes through the
 * folders with a history_keep, slice by slice on the write lane, one slice at a time.  If several
 * nodes share a store, each goes through it; what one has deleted the others do not find. */
#include "docs/docs_impl.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"

#include <stdlib.h>

#define FIRST_MS 5000 /* delay after the start, which is busy */
#define SLICE 50      /* documents */

struct doc_age {
    struct docs *docs;
    struct loop_timer *timer;
    int64_t interval_ms;
    struct docs_set *set; /* of the run; NULL: no run */
    size_t folder;        /* the folder of the slice */
    struct documents_age row;
    char after[UUID_TEXT];
    struct store_op op;
    struct write_job job;
    int64_t texts, bytes; /* of the run */
};

static void slice_start(struct doc_age *a);

static void run_end(struct doc_age *a)
{
    if (a->texts)
        log_info("deleted old texts of documents", LI("texts", a->texts), LI("bytes", a->bytes));
    set_unref(a->set);
    a->set = NULL;
}

static void folder_next(struct doc_age *a)
{
    a->folder++;
    a->after[0] = '\0';
    slice_start(a);
}

static void on_slice(struct write_job *job)
{
    struct doc_age *a = container_of(job, struct doc_age, job);

    if (!job->ok) {
        log_warn("deleting old texts of documents failed; it is tried again at the next interval",
                 LZ("why", job->err.text));
        run_end(a);
        return;
    }
    a->texts += a->row.texts;
    a->bytes += a->row.bytes;
    memcpy(a->after, a->row.last, sizeof(a->after));
    if (a->docs->stopping)
        run_end(a);
    else if (!a->row.documents)
        folder_next(a);
    else
        slice_start(a);
}

static void slice_start(struct doc_age *a)
{
    while (a->folder < a->set->n && !a->set->folders[a->folder]->shown.history_keep_ms)
        a->folder++;
    if (a->folder == a->set->n) {
        run_end(a);
        return;
    }
    const struct docs_folder *f = &a->set->folders[a->folder]->shown;
    a->row = (struct documents_age){
        .folder = f->name,
        .before_ms = clock_life_ms() - f->history_keep_ms,
        .after = a->after[0] ? str_of(a->after) : STR_NONE,
        .limit = SLICE,
    };
    a->op = op_documents_age(&a->row);
    a->job = (struct write_job){.ops = &a->op, .n = 1, .done = on_slice};
    if (!lane_write(a->docs->start.lanes, &a->job))
        run_end(a);
}

static void on_timer(void *arg)
{
    struct doc_age *a = arg;

    if (a->set || a->docs->stopping || !a->docs->set)
        return;
    a->set = a->docs->set;
    set_ref(a->set);
    a->folder = 0;
    a->after[0] = '\0';
    a->texts = a->bytes = 0;
    slice_start(a);
}

static bool any_ages(const struct config *config)
{
    for (size_t i = 0; i < config->n_folders; i++)
        if (config->folders[i].history_keep_ms)
            return true;
    return false;
}

void age_apply(struct docs *d, const struct config *config)
{
    int64_t interval = config->cleanup_interval_ms;

    if (!d->age && !any_ages(config))
        return;
    if (!d->age) {
        d->age = xcalloc(1, sizeof(*d->age));
        d->age->docs = d;
        d->age->timer = loop_timer_new(d->start.loop, on_timer, d->age);
    }
    if (d->age->interval_ms != interval)
        loop_timer_start(d->age->timer, interval < FIRST_MS ? interval : FIRST_MS, interval);
    d->age->interval_ms = interval;
}

void age_stop(struct docs *d)
{
    if (d->age)
        loop_timer_free(d->age->timer);
    if (d->age)
        d->age->timer = NULL;
}

void age_free(struct docs *d)
{
    if (d->age)
        set_unref(d->age->set);
    free(d->age);
}
