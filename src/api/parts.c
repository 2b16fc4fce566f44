/* SPDX-License-Identifier: Apache-2.0 */
/* The operations and schemas of this folder, with those that other folders add between them. */
#include "api/api.h"

#include <assert.h>

#define OPERATIONS_MAX 256
#define SCHEMAS_MAX 256
#define PARTS_MAX 16

static struct {
    bool is_filled; /* the rows of this folder are in it */
    size_t n_operations, n_schemas, n_parts;
    const struct api_operation *operations[OPERATIONS_MAX];
    const struct api_schema *schemas[SCHEMAS_MAX];
    const struct api_part *parts[PARTS_MAX];
} all;

static void fill(void)
{
    if (all.is_filled)
        return;
    all.is_filled = true;
    for (const struct api_operation *op = api_own_operations; op->id; op++) {
        assert(all.n_operations < OPERATIONS_MAX);
        all.operations[all.n_operations++] = op;
    }
    for (const struct api_schema *s = api_own_schemas; s->name; s++) {
        assert(all.n_schemas < SCHEMAS_MAX);
        all.schemas[all.n_schemas++] = s;
    }
}

static void add_operations(const struct api_part *part)
{
    size_t at = 0, n = 0;

    while (at < all.n_operations && strcmp(all.operations[at]->id, part->after) != 0)
        at++;
    while (part->operations[n].id)
        n++;
    assert(at < all.n_operations && all.n_operations + n <= OPERATIONS_MAX);
    at++;
    memmove(&all.operations[at + n], &all.operations[at],
            (all.n_operations - at) * sizeof(all.operations[0]));
    for (size_t i = 0; i < n; i++)
        all.operations[at + i] = &part->operations[i];
    all.n_operations += n;
}

static void add_schemas(const struct api_part *part)
{
    size_t at = 0, n = 0;

    if (!part->schemas)
        return;
    while (at < all.n_schemas && strcmp(all.schemas[at]->name, part->after_schema) != 0)
        at++;
    while (part->schemas[n].name)
        n++;
    assert(at < all.n_schemas && all.n_schemas + n <= SCHEMAS_MAX);
    at++;
    memmove(&all.schemas[at + n], &all.schemas[at], (all.n_schemas - at) * sizeof(all.schemas[0]));
    for (size_t i = 0; i < n; i++)
        all.schemas[at + i] = &part->schemas[i];
    all.n_schemas += n;
}

void api_add(const struct api_part *part)
{
    fill();
    for (size_t i = 0; i < all.n_parts; i++)
        if (all.parts[i] == part)
            return;
    assert(all.n_parts < PARTS_MAX);
    all.parts[all.n_parts++] = part;
    add_operations(part);
    add_schemas(part);
}

const struct api_operation *const *api_operations(size_t *ret_n)
{
    fill();
    *ret_n = all.n_operations;
    return all.operations;
}

const struct api_schema *const *api_schemas(size_t *ret_n)
{
    fill();
    *ret_n = all.n_schemas;
    return all.schemas;
}

const struct api_part *const *api_parts(size_t *ret_n)
{
    *ret_n = all.n_parts;
    return all.parts;
}

void api_write_ready(struct api_services *sv, struct js_writer *w)
{
    for (size_t i = 0; i < all.n_parts; i++)
        if (all.parts[i]->write_ready)
            all.parts[i]->write_ready(sv, w);
}
