/* SPDX-License-Identifier: Apache-2.0 */
/* Server processes are counted for the tenant and the key of the call that starts them: what
 * upstream/ asks before it starts one, answered from identity/quota.h. */
#include "exchange/exchange.h"

static bool on_child_enter(void *arg, const struct principal *who, struct link_place *ret,
                           const void **ret_full)
{
    struct services *sv = arg;
    struct quota_refusal refusal;
    struct quota_use use = {0};

    if (!quota_applies(sv->config, who))
        return true;
    if (!quota_take(sv->quotas, who, QUOTA_CHILD, 0, &use, &refusal)) {
        *ret_full = refusal.who;
        return false;
    }
    *ret = (struct link_place){.of = {use.of[0], use.of[1]}, .held = use.held};
    return true;
}

static void on_child_leave(void *arg unused_arg, struct link_place *place)
{
    struct quota_use use = {.of = {place->of[0], place->of[1]}, .held = place->held};
    quota_release(&use);
    *place = (struct link_place){0};
}

static void on_child_refuse(void *arg, const struct principal *who, struct error *err)
{
    struct services *sv = arg;
    struct quota_refusal refusal;
    struct quota_use use = {0};

    if (quota_take(sv->quotas, who, QUOTA_CHILD, 0, &use, &refusal)) {
        quota_release(&use); /* not reached: it was asked just now */
        return;
    }
    quota_refused(sv->quotas, &refusal);
    *err = refusal.err;
}

struct link_gate exchange_child_gate(struct services *sv)
{
    return (struct link_gate){on_child_enter, on_child_leave, on_child_refuse, sv};
}
