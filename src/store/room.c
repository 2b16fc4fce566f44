/* SPDX-License-Identifier: Apache-2.0 */
#include "store/room.h"

#include "base/log.h"

#include <sys/statvfs.h>

#define MIB (1024.0 * 1024.0)

/* False: the file system does not say. */
static bool ask(struct str dir, int64_t *ret_free)
{
    struct statvfs fs;

    if (statvfs(dir.p, &fs) != 0)
        return false;
    *ret_free = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
    return true;
}

static void announce(const struct room *r, bool low)
{
    struct error err;

    if (!low) {
        log_info("the disk of the data directory has space again");
        return;
    }
    room_explain(r, &err);
    log_warn("new calls are refused", LZ("why", err.text));
}

void room_review(struct room *r, int64_t now_us)
{
    bool was_low = room_is_low(r);
    int64_t reserve = atomic_load(&r->reserve), free = 0;

    if (!r->dir.p || now_us < r->due_us)
        return;
    r->due_us = now_us + ROOM_EVERY_US;
    if (!ask(r->dir, &free))
        return;
    bool low = free < (was_low ? reserve + reserve / 4 : reserve);
    atomic_store(&r->free, free);
    atomic_store(&r->is_low, low);
    if (low != was_low)
        announce(r, low);
}

void room_explain(const struct room *r, struct error *err)
{
    error_set(err, ERR_UNAVAILABLE,
              "the disk of the data directory has %.1f MiB free, and Holdfast keeps %.1f MiB "
              "(limits.disk_reserve) for the calls under way; free some space there, or let the "
              "audit keep less (audit.bodies, audit.keep)",
              (double)atomic_load(&r->free) / MIB, (double)atomic_load(&r->reserve) / MIB);
}
