/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on shares: the checks before any backend sees an op. */
#include "session/share_store/impl.h"

#include "base/random.h"

static bool is_whole(bool whole, struct error *err)
{
    return whole || error_set(err, ERR_INTERNAL,
                              "A store op on an incomplete share was refused; report it.");
}

static bool create_is_sound(const struct store_op *op, struct error *err)
{
    const struct share_row *r = op->row;

    return is_whole(r->id.n == UUID_TEXT - 1 && r->session_id.p && r->created_ms &&
                        r->may >= SHARE_READ && r->may <= SHARE_HAND_OVER,
                    err);
}

static bool end_is_sound(const struct store_op *op, struct error *err)
{
    const struct share_row *r = op->row;

    return is_whole(r->id.p && r->session_id.p && r->ended_ms && r->end_reason.p, err);
}

static bool join_is_sound(const struct store_op *op, struct error *err)
{
    const struct share_join *j = op->row;

    return is_whole(j->id.p && j->session_id.p && j->at_ms && !j->carrier.p == !j->carrier_key.p,
                    err);
}

static bool drop_is_sound(const struct store_op *op, struct error *err)
{
    const struct binding_row *b = op->row;

    return is_whole(b->carrier.p && b->carrier_key.p && b->share_id.p, err);
}

/* A join may change the owner of the session, so its row in the cache must go. */
static struct str joined_session(const struct store_op *op)
{
    return ((const struct share_join *)op->row)->session_id;
}

const struct family_op sharing_ops[] = {
    {OP_SHARE_CREATE, {.name = "share create", .needs_who = true, .is_sound = create_is_sound}},
    {OP_SHARE_END,
     {.name = "share end", .needs_who = true, .is_sound = end_is_sound, .announces = true}},
    {OP_SHARE_JOIN,
     {.name = "share join",
      .needs_who = true,
      .is_sound = join_is_sound,
      .announces = true,
      .session = joined_session}},
    {OP_BINDING_DROP, {.name = "binding drop", .needs_who = true, .is_sound = drop_is_sound}},
    {0},
};
