/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a document: a worker reads the file and makes the views.  Then one commit stores the text
 * as a revision (unless the history already ends with it) and the lines that the reading session
 * has seen.
 *
 * A read in parallel with a change could see the new text before the history has its author.  So it
 * waits for the change and reads again. */
#include "docs/docs_impl.h"

#include "base/clock.h"

#define READ_TRIES 5

static void read_again(struct docs_call *c);

static bool read_file(struct docs_call *c, struct error *err)
{
    return vault_is_current(c->place.folder->vault, err) &&
           vault_read(c->place.folder->vault, c->place.path, c->mem, &c->file, err) &&
           (!c->work || c->work(c, err));
}

static void on_recorded(struct docs_call *c)
{
    c->document = *c->newest;
    c->ok = true;
    call_finish(c);
}

static bool is_overtaken(const struct docs_call *c)
{
    return !c->in_line && (c->is_overtaken || change_runs(c));
}

void read_ended(struct docs_call *c)
{
    list_remove(&c->node);
    c->is_reading = false;
}

static void on_read(struct docs_call *c)
{
    static const struct revision_row outside = {.kind = STR("outside")};
    struct vault_version v = {.bytes = c->file.bytes};

    read_ended(c);
    if (is_overtaken(c)) {
        read_again(c);
        return;
    }
    if (!c->ok) {
        call_finish(c);
        return;
    }
    memcpy(v.sha256, c->file.sha256, sizeof(v.sha256));
    c->n_ops = 0;
    call_revise(c, c->place.path, &v, NULL, &outside);
    call_note_lines(c, c->place.path);
    call_write(c, on_recorded);
}

void read_start(struct docs_call *c)
{
    c->is_overtaken = false;
    c->is_reading = true;
    list_push(&c->home->reading, &c->node);
    c->from_line = c->to_line = 0;
    call_submit(c, c->home->files, read_file, on_read);
}

/* Reads again after the running change of the document.  After READ_TRIES attempts the read waits
 * in line like a change. */
static void read_again(struct docs_call *c)
{
    struct docs *d = c->home;

    c->in_line = ++c->tries >= READ_TRIES;
    if (c->in_line)
        change_enter(c);
    else if (change_runs(c))
        list_push(&d->readers, &c->node);
    else
        read_start(c);
}

void docs_read(struct docs *d, struct docs_call *c)
{
    c->home = d;
    c->tries = 0;
    c->in_line = false;
    change_name_place(c);
    read_start(c);
}
