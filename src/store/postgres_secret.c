/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of tenants' keys and of sealed credentials in PostgreSQL. */
#include "store/postgres_impl.h"

static void read_key(struct pg_row *r, struct tenant_key_row *row)
{
    row->id = pg_get_bytes(r);
    row->tenant = pg_get_bytes(r);
    row->master_id = pg_get_bytes(r);
    row->wrapped = pg_get_bytes(r);
    row->created_ms = pg_get_time(r);
}

bool pg_tenant_key_get(struct store *s, struct str tenant, struct str id, struct arena *mem,
                       struct tenant_key_row **ret_row, struct error *err)
{
    struct tenant_key_row *row = NULL;
    struct pg_params p = {0};
    PGresult *res = NULL;
    pg_text(&p, pg_is_text(tenant) ? tenant : STR("")); /* no tenant is named so */
    pg_text(&p, !id.p || pg_is_text(id) ? id : STR(""));
    if (!pg_query(pg_of(s), PG_TENANT_KEY_GET, &p, &res, err))
        return false;
    if (PQntuples(res) > 0) {
        struct pg_row r = {.res = res, .mem = mem};
        row = arena_new_of(mem, struct tenant_key_row);
        read_key(&r, row);
    }
    PQclear(res);
    *ret_row = row;
    return true;
}

bool pg_tenant_keys_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                         struct tenant_key_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct pg_params p = {0};
    PGresult *res = NULL;
    pg_text(&p, after);
    pg_int(&p, limit);
    if (!pg_query(pg_of(s), PG_TENANT_KEYS_PAGE, &p, &res, err))
        return false;
    size_t n = (size_t)PQntuples(res);
    struct tenant_key_row *rows = arena_zalloc(mem, (n + 1) * sizeof(*rows));
    for (size_t i = 0; i < n; i++) {
        struct pg_row r = {.res = res, .mem = mem, .row = (int)i};
        read_key(&r, &rows[i]);
    }
    PQclear(res);
    *ret_rows = rows;
    *ret_n = n;
    return true;
}

bool pg_sealed_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                    struct session_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct pg_params p = {0};
    PGresult *res = NULL;
    bool ok = true;
    pg_uuid(&p, after);
    pg_int(&p, limit);
    if (!pg_query(pg_of(s), PG_SEALED_PAGE, &p, &res, err))
        return false;
    size_t n = (size_t)PQntuples(res);
    struct session_row *rows = arena_zalloc(mem, (n + 1) * sizeof(*rows));
    for (size_t i = 0; ok && i < n; i++) {
        struct pg_row r = {.res = res, .mem = mem, .row = (int)i};
        ok = pg_read_session(&r, &rows[i], err);
    }
    PQclear(res);
    if (ok) {
        *ret_rows = rows;
        *ret_n = n;
    }
    return ok;
}
