/* SPDX-License-Identifier: Apache-2.0 */
/* The quota on server processes.  Processes are counted for the tenant and the key of the call that
 * starts them.  upstream/ asks here before it starts a process; identity/quota.h answers. */
#include "exchange/exchange.h"

static bool on_process_take(void *arg, const struct principal *who, struct process_slot *ret,
                            const void **ret_exhausted)
{
    struct services *sv = arg;
    struct quota_refusal refusal;
    struct quota_use use = {0};

    if (!quota_applies(sv->front->config, who))
        return true;
    if (!quota_take(sv->front->quotas, who, QUOTA_CHILD, 0, &use, &refusal)) {
        *ret_exhausted = refusal.who;
        return false;
    }
    *ret = (struct process_slot){.of = {use.of[0], use.of[1]}, .held = use.held};
    return true;
}

static void on_process_release(void *arg unused_arg, struct process_slot *slot)
{
    struct quota_use use = {.of = {slot->of[0], slot->of[1]}, .held = slot->held};
    quota_release(&use);
    *slot = (struct process_slot){0};
}

static void on_process_refuse(void *arg, const struct principal *who, struct error *err)
{
    struct services *sv = arg;
    struct quota_refusal refusal;
    struct quota_use use = {0};

    if (quota_take(sv->front->quotas, who, QUOTA_CHILD, 0, &use, &refusal)) {
        quota_release(&use); /* not reached: the quota has just refused */
        return;
    }
    quota_refused(sv->front->quotas, &refusal);
    *err = refusal.err;
}

struct process_quota exchange_process_quota(struct services *sv)
{
    return (struct process_quota){on_process_take, on_process_release, on_process_refuse, sv};
}
