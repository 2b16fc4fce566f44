/* SPDX-License-Identifier: Apache-2.0 */
/* The reads of sharing, and the family that adds them to the store. */
#include "session/share_store/verbs.h"

#include "session/share_store/family.h"
#include "session/share_store/impl.h"

bool store_shares_page(struct store *s, const struct principal *who, struct str session_id,
                       struct str after, unsigned limit, struct arena *mem,
                       struct share_row **ret_rows, size_t *ret_n, struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_SHARES_PAGE, .who = who, .session_id = session_id,
                                           .after = after, .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}

static bool find(struct store *s, const struct principal *who, const struct share_find *by,
                 struct arena *mem, struct share_row **ret_row, struct error *err)
{
    return store_row(s, &(struct store_call){VERB_SHARE, .who = who, .filter = by, .mem = mem},
                     ret_row, err);
}

bool store_share_by_code(struct store *s, const struct principal *who, const uint8_t code_hash[32],
                         struct arena *mem, struct share_row **ret_row, struct error *err)
{
    return find(s, who, &(struct share_find){.code_hash = code_hash}, mem, ret_row, err);
}

bool store_share_by_id(struct store *s, const struct principal *who, struct str id,
                       struct arena *mem, struct share_row **ret_row, struct error *err)
{
    return find(s, who, &(struct share_find){.id = id}, mem, ret_row, err);
}

bool store_share_of(struct store *s, const struct principal *who, struct str session_id,
                    struct arena *mem, struct share_row **ret_row, struct error *err)
{
    return find(s, who, &(struct share_find){.session_id = session_id}, mem, ret_row, err);
}

bool store_shared_session(struct store *s, const struct principal *who, struct str name, bool by_id,
                          struct arena *mem, struct session_row **ret_row, struct error *err)
{
    return store_row(s,
                     &(struct store_call){VERB_SHARED_SESSION, .who = who, .id = name,
                                          .flag = by_id, .mem = mem},
                     ret_row, err);
}

bool store_binding(struct store *s, const struct principal *who, struct str carrier, struct str key,
                   struct arena *mem, struct binding_row **ret_row, struct error *err)
{
    return store_row(
        s, &(struct store_call){VERB_BINDING, .who = who, .name = carrier, .id = key, .mem = mem},
        ret_row, err);
}

bool store_has_bindings(struct store *s, bool *ret, struct error *err)
{
    static const struct principal nobody = {.tenant = {"", 0}, .owner = {"", 0}};
    struct arena *mem = arena_new(1 << 16);
    struct binding_row *row = NULL;
    bool ok = store_binding(s, &nobody, STR_NONE, STR_NONE, mem, &row, err);

    if (ok)
        *ret = row != NULL;
    arena_free(mem);
    return ok;
}

#define VERB_ROW(upper, lower, kind) {VERB_##upper, {#lower, VERB_KIND_##kind}},
static const struct family_verb verbs[] = {SHARING_VERBS(VERB_ROW){0}};

const struct store_family sharing_store = {
    .verbs = verbs,
    .ops = sharing_ops,
    .reads = sql_sharing_reads,
    .sqlite = &sharing_sqlite,
    .postgres = &sharing_postgres,
};
