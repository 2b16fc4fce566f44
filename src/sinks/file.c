/* SPDX-License-Identifier: Apache-2.0 */
/* A sink into a file: each event is a line of JSON.  The worker has the file while it writes; a way
 * out that is freed meanwhile goes when the worker has returned. */
#include "sinks/append.h"
#include "sinks/out.h"

#include <stdlib.h>

struct file_out {
    struct sink_out out;
    struct sink_out_config config;
    struct append_file file;
    struct buf lines; /* a copy of the batch, for the worker */
    struct worker_job job;
    bool ok, is_running, is_over;
    struct error err;
};

static bool file_make(const struct sink_out_config *c, struct sink_out **ret,
                      struct error *err unused_arg)
{
    struct file_out *o = xcalloc(1, sizeof(*o));

    o->out.type = &sink_file;
    o->config = *c;
    o->config.config = NULL;
    o->file = (struct append_file){.path = strndup(c->config->path.p, c->config->path.n),
                                   .max_size = c->config->max_size,
                                   .keep = c->config->keep,
                                   .fd = -1};
    buf_init(&o->lines, SIZE_MAX);
    *ret = &o->out;
    return true;
}

static void file_add(struct sink_out *o unused_arg, const struct sink_item *item, struct buf *to)
{
    sink_item_write(item, to);
    buf_addc(to, '\n');
}

static void release(struct file_out *o)
{
    append_close(&o->file);
    free(o->file.path);
    buf_release(&o->lines);
    free(o);
}

static void run(struct worker_job *job)
{
    struct file_out *o = container_of(job, struct file_out, job);

    o->ok = append_lines(&o->file, buf_str(&o->lines), &o->err);
}

static void on_written(struct worker_job *job, bool ran)
{
    struct file_out *o = container_of(job, struct file_out, job);
    struct sink_answer a = {.result = ran && o->ok ? SINK_TAKEN : SINK_LATER};

    o->is_running = false;
    if (o->is_over) {
        release(o);
        return;
    }
    if (a.result != SINK_TAKEN)
        a.why = ran ? o->err.text : "Holdfast stops";
    o->config.done(o->config.arg, &a);
}

static void file_send(struct sink_out *out, const struct sink_batch *b)
{
    struct file_out *o = container_of(out, struct file_out, out);

    buf_release(&o->lines);
    buf_init(&o->lines, SIZE_MAX);
    buf_addstr(&o->lines, buf_str(&b->bytes));
    o->job = (struct worker_job){.run = run, .done = on_written};
    o->is_running = worker_submit(o->config.files, &o->job);
    if (!o->is_running) /* there are far fewer sinks than places in the queue */
        abort();
}

static void file_free(struct sink_out *out)
{
    struct file_out *o = container_of(out, struct file_out, out);

    o->is_over = true;
    if (!o->is_running)
        release(o);
}

const struct sink_out_type sink_file = {file_make, file_add, file_send, file_free};
