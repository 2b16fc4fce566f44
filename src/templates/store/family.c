/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs and ops of templates, and the family that adds them to the store. */
#include "templates/store/family.h"

#include "templates/store/impl.h"

bool store_template(struct store *s, struct str tenant, struct str name, int64_t version,
                    struct arena *mem, struct template_row **ret_row, struct error *err)
{
    return store_row(s,
                     &(struct store_call){VERB_TEMPLATE, .tenant = tenant, .name = name,
                                          .number = version, .mem = mem},
                     ret_row, err);
}

bool store_templates_page(struct store *s, struct str tenant, struct str after, unsigned limit,
                          struct arena *mem, struct template_row **ret_rows, size_t *ret_n,
                          struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_TEMPLATES_PAGE, .tenant = tenant, .after = after,
                                           .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}

bool store_template_versions(struct store *s, struct str tenant, struct str name, int64_t before,
                             unsigned limit, struct arena *mem, struct template_row **ret_rows,
                             size_t *ret_n, struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_TEMPLATE_VERSIONS, .tenant = tenant, .name = name,
                                           .after_id = before, .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}

static bool is_named(const struct template_row *row)
{
    return row->tenant.n && row->name.n && row->name.n <= TEMPLATE_NAME_MAX;
}

static bool put_is_sound(const struct store_op *op, struct error *err)
{
    const struct template_change *c = op->row;
    if (!is_named(&c->row) || !c->row.spec.n || !c->row.created_by.n)
        return error_set(err, ERR_INTERNAL,
                         "A template without tenant, name, spec or author was refused; report it.");
    return c->row.spec.n <= TEMPLATE_SPEC_MAX ||
           error_set(err, ERR_TOO_LARGE, "A template of %zu bytes is too large; the most is %zu.",
                     c->row.spec.n, TEMPLATE_SPEC_MAX);
}

static bool remove_is_sound(const struct store_op *op, struct error *err)
{
    const struct template_change *c = op->row;
    return is_named(&c->row) ||
           error_set(err, ERR_INTERNAL, "A removal that names no template was refused; report it.");
}

static const struct family_op ops[] = {
    {OP_TEMPLATE_PUT, {"template put", false, put_is_sound}},
    {OP_TEMPLATE_REMOVE, {"template remove", false, remove_is_sound}},
    {0},
};

#define VERB_ROW(upper, lower, kind) {VERB_##upper, {#lower, VERB_KIND_##kind}},
static const struct family_verb verbs[] = {TEMPLATE_VERBS(VERB_ROW){0}};

const struct store_family templates_store = {
    .verbs = verbs,
    .ops = ops,
    .reads = sql_template_reads,
    .sqlite = &template_sqlite,
    .postgres = &template_postgres,
};
