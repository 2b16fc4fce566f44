/* SPDX-License-Identifier: Apache-2.0 */
/* Life time: the monotonic clock plus an offset.  The first caller after a second has passed
 * compares it with the wall clock and slews it by at most a twelfth of the elapsed time; all other
 * callers read one clock and one atomic.
 *
 * The offset is valid for every process of one boot, because the monotonic clock counts from the
 * boot on.  So the offset is saved in a file with the boot's id, and a wrong wall clock during a
 * restart has no effect. */
#include "base/clock.h"
#include "base/clock_impl.h"

#include "base/log.h"
#include "base/metric.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LOOK_EVERY_MS 1000
#define SMALL_MS 60000       /* a larger difference is a jump */
#define LEAD_DIVISOR 12      /* 5 s per minute */
#define LEAD_AT_MOST_MS 5000 /* in one step, however long ago the last call was */
#define KEEP_EVERY_MS 1000   /* change of the offset after which it is saved again */
/* 2020: a clock before this was never set, so life time restarts when the wall clock is set. */
#define EARLIEST_MS INT64_C(1577836800000)
#define BOOT_ID 36

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int64_t offset_ms;           /* life = mono + offset */
static _Atomic int64_t look_ms = INT64_MIN; /* mono time of the next comparison */
static int64_t looked_ms, logged_ms;        /* logged_ms: the last jump that was logged */
static int64_t saved_ms = INT64_MIN;        /* offset in the file; INT64_MIN: not saved */
static char *saved_path;
static bool begun;

static int64_t clamp(int64_t v, int64_t most)
{
    return v > most ? most : v < -most ? -most : v;
}

static void show_jump(int64_t ms)
{
    struct metric *m =
        metric_register(METRIC_GAUGE, "holdfast_clock_jump_seconds",
                        "By how much the wall clock is ahead of lifetimes since it jumped.", "", 1);
    metric_set(metric_cell(m, NULL, 0), ms / 1000);
}

/* Logs a jump on top of an earlier jump again.  Logs once when the wall clock is back. */
static void log_jump(int64_t apart_ms)
{
    bool is_jump = llabs(apart_ms) > SMALL_MS;

    if (is_jump ? llabs(apart_ms - logged_ms) <= SMALL_MS : logged_ms == 0)
        return;
    if (is_jump)
        log_warn("the wall clock jumped; lifetimes of sessions and leases are not affected",
                 LI("seconds_ahead", apart_ms / 1000));
    else
        log_info("the wall clock agrees with the clock of lifetimes again");
    logged_ms = is_jump ? apart_ms : 0;
    show_jump(logged_ms);
}

static void begin_locked(int64_t mono_ms)
{
    offset_ms = clock_wall_ms() - mono_ms;
    logged_ms = 0;
    begun = true;
    show_jump(0);
}

static void lead_locked(int64_t mono_ms)
{
    int64_t life = mono_ms + offset_ms, wall = clock_wall_ms(), apart = wall - life;
    int64_t most = clamp((mono_ms - looked_ms) / LEAD_DIVISOR, LEAD_AT_MOST_MS);

    if (life < EARLIEST_MS && wall >= EARLIEST_MS)
        begin_locked(mono_ms);
    else if (llabs(apart) <= SMALL_MS)
        offset_ms += clamp(apart, most);
    log_jump(wall - mono_ms - offset_ms);
}

static void look(int64_t mono_ms)
{
    pthread_mutex_lock(&lock);
    if (!begun)
        begin_locked(mono_ms);
    else if (mono_ms >= look_ms)
        lead_locked(mono_ms);
    looked_ms = mono_ms;
    look_ms = mono_ms + LOOK_EVERY_MS;
    pthread_mutex_unlock(&lock);
}

int64_t clock_life_ms(void)
{
    int64_t mono_ms = clock_mono_ms();

    if (unlikely(mono_ms >= look_ms))
        look(mono_ms);
    return mono_ms + offset_ms;
}

int64_t clock_life_of_wall(int64_t wall_ms)
{
    int64_t now = clock_life_ms(), apart = clock_wall_ms() - now;

    if (llabs(apart) > SMALL_MS)
        wall_ms -= apart;
    return wall_ms < now ? wall_ms : now;
}

void clock_life_begin(void)
{
    pthread_mutex_lock(&lock);
    begun = false;
    look_ms = INT64_MIN;
    pthread_mutex_unlock(&lock);
}

/* Reads the id of this boot; false if the kernel has none, and then nothing is saved. */
static bool boot_id(char ret[BOOT_ID + 1])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && read(fd, ret, BOOT_ID) == BOOT_ID;

    if (fd >= 0)
        close(fd);
    ret[BOOT_ID] = '\0';
    return ok;
}

static bool read_saved(const char *path, int64_t *ret_offset_ms)
{
    char boot[BOOT_ID + 1], of[BOOT_ID + 1];
    FILE *f = fopen(path, "re");
    long long ms;
    bool ok = f && boot_id(boot) && fscanf(f, "%36s %lld", of, &ms) == 2 && strcmp(boot, of) == 0;

    if (f)
        fclose(f);
    if (ok)
        *ret_offset_ms = ms;
    return ok;
}

void clock_life_continue(const char *path)
{
    int64_t mono_ms = clock_mono_ms(), saved;

    pthread_mutex_lock(&lock);
    free(saved_path);
    saved_path = strdup(path);
    saved_ms = INT64_MIN;
    begin_locked(mono_ms);
    if (read_saved(path, &saved)) {
        offset_ms = saved;
        saved_ms = saved;
    }
    looked_ms = mono_ms;
    look_ms = mono_ms; /* so that a jump since then is logged at once */
    pthread_mutex_unlock(&lock);
    (void)clock_life_ms();
    clock_life_keep();
}

/* Writes the file atomically: a partly written offset would be a wrong life time. */
static bool write_saved(int64_t ms)
{
    char boot[BOOT_ID + 1], fresh[4096];
    FILE *f = NULL;

    if (snprintf(fresh, sizeof(fresh), "%s.new", saved_path) >= (int)sizeof(fresh) ||
        !boot_id(boot))
        return false;
    f = fopen(fresh, "we");
    if (!f)
        return false;
    bool ok = fprintf(f, "%s %lld\n", boot, (long long)ms) > 0;
    ok = fclose(f) == 0 && ok;
    return ok && rename(fresh, saved_path) == 0;
}

void clock_life_keep(void)
{
    int64_t ms = offset_ms;

    if (!saved_path || (saved_ms != INT64_MIN && llabs(ms - saved_ms) < KEEP_EVERY_MS))
        return;
    if (!write_saved(ms)) /* the next start then begins at the wall clock */
        log_warn("the clock of lifetimes could not be saved; check the data directory",
                 LZ("file", saved_path));
    saved_ms = ms;
}
