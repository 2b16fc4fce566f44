/* SPDX-License-Identifier: Apache-2.0 */
/* The words for what is left of a body, and for how a call was recorded. */
#include "recording/recording.h"

static const char *const states[] = {
    [RECORDED_NONE] = "none", [RECORDED_COMPLETE] = "complete", [RECORDED_REDACTED] = "redacted",
    [RECORDED_CUT] = "cut",   [RECORDED_DIGEST] = "digest",     [RECORDED_REMOVED] = "removed",
};
static const char *const kinds[] = {
    [RECORDED_CALL] = "call", [RECORDED_NOTE] = "note", [RECORDED_REPORTED] = "reported"};

const char *recorded_state_name(enum recorded_state state)
{
    return states[state];
}

bool recorded_state_parse(struct str name, enum recorded_state *ret)
{
    for (size_t i = 0; i < countof(states); i++)
        if (str_eq(name, str_of(states[i]))) {
            *ret = (enum recorded_state)i;
            return true;
        }
    return false;
}

const char *recorded_kind_name(enum recorded_kind kind)
{
    return kinds[kind];
}

bool recorded_kind_parse(struct str name, enum recorded_kind *ret)
{
    for (size_t i = 0; i < countof(kinds); i++)
        if (str_eq(name, str_of(kinds[i]))) {
            *ret = (enum recorded_kind)i;
            return true;
        }
    return false;
}

const char *recorded_body_lack(const struct recorded_body *body, struct arena *mem)
{
    switch (body->state) {
    case RECORDED_COMPLETE:
        return NULL;
    case RECORDED_NONE:
        return "were not recorded";
    case RECORDED_REDACTED:
        return "contain redacted secrets";
    case RECORDED_CUT:
        if (body->length < 0)
            return "were cut: they are more than audit_body keeps";
        return arena_printf(mem, "were cut: %lld bytes are more than the server's audit_body keeps",
                            (long long)body->length)
            .p;
    case RECORDED_DIGEST:
        return "were recorded as a digest only (audit: digest)";
    case RECORDED_REMOVED:
        return "were removed by retention or an erasure";
    }
    return NULL;
}
