/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which repetitions of a log line are written. */
#include "base/log_quiet.h"

#include "base/clock.h"

bool log_quiet_passes(struct log_quiet *q, uint64_t *ret_held_back)
{
    int64_t now = clock_mono_ms();
    int64_t until = atomic_load_explicit(&q->until_ms, memory_order_relaxed);
    if ((until != 0 && now < until) ||
        !atomic_compare_exchange_strong(&q->until_ms, &until, now + LOG_QUIET_MS)) {
        atomic_fetch_add_explicit(&q->held_back, 1, memory_order_relaxed);
        return false;
    }
    *ret_held_back = atomic_exchange(&q->held_back, 0);
    return true;
}
