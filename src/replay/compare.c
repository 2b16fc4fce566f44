/* SPDX-License-Identifier: Apache-2.0 */
/* The recorded answer of a call beside the one that came now.  Whole results are compared as JSON.
 * Of a result that was not kept whole the digest remains: equal digests mean equal bytes. */
#include "replay/impl.h"

#include "crypto/hash.h"

static bool was_error(const struct recorded_call *c)
{
    return str_eq(c->outcome, STR("error"));
}

static bool has_digest(const struct recorded_body *b)
{
    static const uint8_t zero[SHA256_BYTES];

    return memcmp(b->sha, zero, sizeof(b->sha)) != 0;
}

static bool same_bytes(const struct recorded_body *b, struct str bytes)
{
    uint8_t sha[SHA256_BYTES];

    sha256(bytes, sha);
    return has_digest(b) && memcmp(sha, b->sha, sizeof(sha)) == 0;
}

static struct str one_line(struct str text, const char *what, struct arena *mem)
{
    struct str part = str_cut(text, DIFF_VALUE_MAX);

    return arena_printf(mem, "%s %.*s%s", what, STR_ARG(part), part.n < text.n ? "…" : "");
}

/* A result where there was an error, or the other way round. */
static void other_kind(const struct recorded_call *c, const struct replay_answer *now,
                       struct arena *mem, struct replay_verdict *ret)
{
    ret->status = REPLAY_DIFFERENT;
    ret->reason = now->is_error ? STR("the server answered with an error now")
                                : STR("the server answered with a result now, and with an error "
                                      "then");
    ret->diff.n = ret->diff.total = 1;
    ret->diff.list[0] = (struct difference){
        .kind = DIFF_CHANGED,
        .path = STR(""),
        .before = one_line(c->result.bytes.p ? c->result.bytes : STR("(not kept)"),
                           was_error(c) ? "error" : "result", mem),
        .after = one_line(now->body, now->is_error ? "error" : "result", mem),
    };
}

static void no_answer(const struct replay_answer *now, struct replay_verdict *ret)
{
    ret->status = now->is_refused ? REPLAY_REFUSED : REPLAY_FAILED;
    ret->reason = now->why;
}

void replay_compare(const struct recorded_call *c, const struct replay_answer *now,
                    const struct diff_ignore *ignore, struct arena *mem, struct replay_verdict *ret)
{
    ret->reason = STR_NONE;
    ret->diff.n = ret->diff.total = 0;
    if (!now->body.p) {
        no_answer(now, ret);
    } else if (was_error(c) != now->is_error) {
        other_kind(c, now, mem, ret);
    } else if (same_bytes(&c->result, now->body)) {
        ret->status = REPLAY_SAME;
    } else if (c->result.state != RECORDED_COMPLETE) {
        ret->status = REPLAY_UNKNOWN;
        ret->reason = arena_printf(
            mem, "the bytes of the recorded result %s%s", recorded_body_lack(&c->result, mem),
            has_digest(&c->result) ? "; by their digest, other bytes came now" : "");
    } else if (!diff_json(c->result.bytes, now->body, ignore, mem, &ret->diff)) {
        ret->status = REPLAY_UNKNOWN;
        ret->reason = STR("one of the two results cannot be read as JSON within the limits");
    } else {
        ret->status = ret->diff.total ? REPLAY_DIFFERENT : REPLAY_SAME;
    }
}
