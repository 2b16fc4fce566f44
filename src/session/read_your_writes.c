/* SPDX-License-Identifier: Apache-2.0 */
/* Stamps by the hash of a name, and the fold that all waiting reads share.
 *
 * Time is counted in epochs.  Each barrier queued on the write lane ends an epoch.  A touch belongs
 * to the current epoch.  The barrier that ends this epoch is queued after the touch, so the touch
 * is folded when the barrier is done. */
#include "session/read_your_writes.h"

#include "base/map.h"

#include <stdlib.h>

/* A power of two.  Two names in one slot only cause an unneeded wait.  A megabyte of slots makes
 * that rare, and the kernel allocates its pages on first use. */
#define SLOTS 65536

struct slot {
    uint64_t stamp, epoch;
};

struct read_your_writes {
    struct lanes *lanes;
    struct deadline_class late;
    uint64_t epoch;   /* epoch of touches made now; starts at 1 */
    uint64_t folded;  /* the last epoch with all touches folded */
    uint64_t touched; /* the last epoch with a touch */
    uint64_t covers;  /* the epoch that the running barrier ends */
    uint64_t asked;   /* increases with every stamp and every epoch; starts at 1 */
    bool busy;
    struct write_job barrier;
    struct list waiting; /* struct fold_wait, in order of epochs */
    struct slot slots[SLOTS];
};

struct read_your_writes *read_your_writes_new(struct loop *loop, struct lanes *lanes)
{
    struct read_your_writes *f = xcalloc(1, sizeof(*f));
    f->lanes = lanes;
    f->epoch = f->asked = 1;
    list_init(&f->waiting);
    deadline_class_init(&f->late, loop, READ_YOUR_WRITES_WAIT_MS);
    return f;
}

void read_your_writes_free(struct read_your_writes *f)
{
    if (!f)
        return;
    deadline_class_release(&f->late);
    free(f);
}

static size_t slot_of(struct touch_scope scope, struct str name)
{
    uint64_t hash = map_hash(name) + UINT64_C(0x9e3779b97f4a7c15) * map_hash(scope.tenant);

    if (scope.owner.p)
        hash += UINT64_C(0xd1b54a32d192ed03) * map_hash(scope.owner);
    return (hash ^ hash >> 32) & (SLOTS - 1);
}

struct touch_slots touch_slots_of(struct touch_scope scope, struct str name)
{
    struct touch_scope anybody = {.tenant = scope.tenant};
    return (struct touch_slots){(uint32_t)slot_of(anybody, name), (uint32_t)slot_of(scope, name)};
}

/* Stamps are per tenant; epochs are per tenant and per owner. */
void read_your_writes_touch(struct read_your_writes *f, struct touch_slots name, bool by_event)
{
    struct slot *wide = &f->slots[name.wide];

    wide->stamp++;
    if (by_event)
        wide->epoch = f->slots[name.own].epoch = f->touched = f->epoch;
}

bool read_your_writes_move_mark(const struct read_your_writes *f, uint64_t *mark)
{
    bool moves = *mark != f->asked;

    *mark = f->asked;
    return moves;
}

uint64_t read_your_writes_stamp_at(struct read_your_writes *f, struct touch_slots name)
{
    f->asked++;
    return f->slots[name.wide].stamp;
}

uint64_t read_your_writes_stamp(struct read_your_writes *f, struct str tenant, struct str name)
{
    struct touch_scope anybody = {.tenant = tenant};

    f->asked++;
    return f->slots[slot_of(anybody, name)].stamp;
}

static void let_go(struct fold_wait *w)
{
    list_remove(&w->node);
    deadline_clear(&w->late);
    w->done(w);
}

static void on_late(struct deadline *late)
{
    let_go(container_of(late, struct fold_wait, late));
}

static void ask(struct read_your_writes *f);

static void on_folded(struct write_job *job)
{
    struct read_your_writes *f = container_of(job, struct read_your_writes, barrier);
    struct list ready;

    f->busy = false;
    if (job->ok)
        f->folded = f->covers;
    list_init(&ready);
    list_each(&f->waiting, node)
    {
        if (list_entry(node, struct fold_wait, node)->epoch > f->covers)
            break;
        list_remove(node);
        list_push(&ready, node);
    }
    for (struct list *node = list_first(&ready); node; node = list_first(&ready))
        let_go(list_entry(node, struct fold_wait, node));
    if (!list_empty(&f->waiting))
        ask(f);
}

static void ask(struct read_your_writes *f)
{
    if (f->busy)
        return;
    f->covers = f->epoch++;
    f->asked++;
    f->barrier = (struct write_job){.done = on_folded};
    f->busy = lane_write(f->lanes, &f->barrier); /* if refused, waiting reads time out */
}

bool read_your_writes_await(struct read_your_writes *f, struct fold_wait *w,
                            struct touch_scope scope, struct str name)
{
    uint64_t epoch = name.p ? f->slots[slot_of(scope, name)].epoch : f->touched;

    if (epoch <= f->folded)
        return true;
    w->epoch = epoch;
    deadline_init(&w->late, on_late);
    deadline_set(&f->late, &w->late);
    list_push(&f->waiting, &w->node);
    ask(f);
    return false;
}
