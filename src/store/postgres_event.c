/* SPDX-License-Identifier: Apache-2.0 */
/* Events in PostgreSQL: segments (store/segment.h) under the id of their first event. */
#include "store/postgres_impl.h"

bool pg_event_at(struct pg_store *s, int64_t id, PGresult **ret_res, struct event_row *ret,
                 bool *ret_found, struct error *err)
{
    struct pg_params p = {0};
    PGresult *res = NULL;
    struct segment_walk walk = {0};
    pg_int(&p, id);
    if (!pg_run(s, PG_EVENT_AT, &p, &res, err))
        return false;
    if (PQntuples(res) > 0) {
        struct pg_row r = {.res = res};
        walk.id = pg_get_int(&r);
        walk.records = pg_peek_bytes(&r);
    }
    *ret_found = false;
    while (!*ret_found && walk.records.n && segment_next(&walk, ret))
        *ret_found = ret->id == id;
    *ret_res = res;
    return true;
}
