/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and sign-ins that other processes have revoked; see store/change_poller.h. */
#include "identity/identity_impl.h"

void identity_changed_elsewhere(struct identity *id, const struct change_row *row)
{
    struct arena *mem;

    if (row->kind == CHANGE_USER_CHANGED)
        identity_user_changed(id, row->name);
    if (row->kind != CHANGE_KEY_REVOKED && row->kind != CHANGE_LOGIN_ENDED)
        return;
    mem = arena_new(4096);
    identity_revoked(id, arena_printf(mem, "%s:%.*s",
                                      row->kind == CHANGE_KEY_REVOKED ? "key" : "session",
                                      STR_ARG(row->name)));
    arena_free(mem);
}
