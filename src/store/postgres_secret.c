/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of tenants' keys and of sealed credentials in PostgreSQL. */
#include "store/postgres_impl.h"

static bool read_key(struct pg_row *r, void *to, struct error *err unused_arg)
{
    struct tenant_key_row *row = to;
    row->id = pg_get_bytes(r);
    row->tenant = pg_get_bytes(r);
    row->master_id = pg_get_bytes(r);
    row->wrapped = pg_get_bytes(r);
    row->created_ms = pg_get_time(r);
    return true;
}

bool pg_tenant_key_get(struct store *s, struct str tenant, struct str id, struct arena *mem,
                       struct tenant_key_row **ret_row, struct error *err)
{
    struct pg_rows keys = {.read = read_key, .size = sizeof(struct tenant_key_row), .mem = mem};
    struct pg_params p = {0};
    pg_text(&p, pg_is_text(tenant) ? tenant : STR("")); /* no tenant has this id */
    pg_text(&p, !id.p || pg_is_text(id) ? id : STR(""));
    if (!pg_read_row(pg_of(s), PG_TENANT_KEY_GET, &p, &keys, err))
        return false;
    *ret_row = keys.items;
    return true;
}

bool pg_tenant_keys_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                         struct tenant_key_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct pg_rows keys = {.read = read_key, .size = sizeof(struct tenant_key_row), .mem = mem};
    struct pg_params p = {0};
    pg_text(&p, after);
    pg_int(&p, limit);
    if (!pg_read_rows(pg_of(s), PG_TENANT_KEYS_PAGE, &p, &keys, err))
        return false;
    *ret_rows = keys.items;
    *ret_n = keys.n;
    return true;
}

bool pg_sealed_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                    struct session_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct pg_rows sessions = {
        .read = pg_read_session, .size = sizeof(struct session_row), .mem = mem};
    struct pg_params p = {0};
    pg_uuid(&p, after);
    pg_int(&p, limit);
    if (!pg_read_rows(pg_of(s), PG_SEALED_PAGE, &p, &sessions, err))
        return false;
    *ret_rows = sessions.items;
    *ret_n = sessions.n;
    return true;
}
