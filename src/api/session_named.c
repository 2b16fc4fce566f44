/* SPDX-License-Identifier: Apache-2.0 */
#include "api/session_named.h"

#include "api/bodies.h"
#include "base/random.h"

#define NAME_LEAST 4 /* characters of the beginning of a name */

/* An exact name wins over a beginning that others share. */
bool session_find_named(struct store *store, const struct principal *reader, struct str name,
                        struct arena *mem, struct session_row **ret, struct error *err)
{
    struct session_row *row = NULL, *rows = NULL;
    struct str id = uuid_lower(name, mem);
    size_t n = 0;

    if (!store_session_by_handle(store, reader, name, mem, &row, err) ||
        (!row && text_is_uuid(id) && !store_session_by_id(store, reader, id, mem, &row, err)))
        return false;
    if (!row && name.n >= NAME_LEAST &&
        !store_sessions_named(store, reader, name, 2, mem, &rows, &n, err))
        return false;
    if (n > 1)
        return error_set(err, ERR_BAD_INPUT,
                         "several sessions begin with \"%.*s\"; give more of the name",
                         (int)(name.n < 100 ? name.n : 100), name.p);
    *ret = n ? rows : row;
    return *ret || error_set(err, ERR_NOT_FOUND,
                             "there is no session \"%.*s\"; `holdfast sessions list --status "
                             "all` shows those there are",
                             (int)(name.n < 100 ? name.n : 100), name.p);
}
