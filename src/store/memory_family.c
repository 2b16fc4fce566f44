/* SPDX-License-Identifier: Apache-2.0 */
/* Families (store/family.h) in the memory store. */
#include "store/memory_impl.h"

#include <assert.h>
#include <stdlib.h>

static struct {
    size_t n;
    const struct memory_family *items[STORE_FAMILIES_MAX];
} families;

void memory_family_add(const struct memory_family *family)
{
    for (size_t i = 0; i < families.n; i++)
        if (families.items[i] == family)
            return;
    assert(families.n < STORE_FAMILIES_MAX);
    families.items[families.n++] = family;
}

const struct memory_family *const *memory_families(size_t *ret_n)
{
    *ret_n = families.n;
    return families.items;
}

void *mem_family_arrays(struct memory_store *s, const struct memory_family *family)
{
    size_t i = 0;
    while (families.items[i] != family)
        i++;
    return s->families[i];
}

void mem_families_init(struct memory_store *s)
{
    for (size_t i = 0; i < families.n; i++)
        s->families[i] = xcalloc(1, families.items[i]->size);
}

bool mem_families_keep(struct memory_store *s, const struct session_row *row)
{
    for (size_t i = 0; i < families.n; i++)
        if (families.items[i]->keeps && families.items[i]->keeps(s, row))
            return true;
    return false;
}

void mem_families_count(struct memory_store *s, const struct counted_call *call)
{
    for (size_t i = 0; i < families.n; i++)
        if (families.items[i]->count)
            families.items[i]->count(s, call);
}

size_t mem_families_tables(struct memory_store *s, struct mem_table *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < families.n; i++)
        n += families.items[i]->tables(s->families[i], ret + n);
    return n;
}

void mem_families_release(struct memory_store *s)
{
    struct mem_table tables[MEM_TABLES_MAX];
    for (size_t i = 0; i < families.n; i++)
        if (families.items[i]->release)
            families.items[i]->release(s->families[i]);
    size_t n = mem_families_tables(s, tables);
    for (size_t i = 0; i < n; i++)
        free(*tables[i].rows);
    for (size_t i = 0; i < families.n; i++)
        free(s->families[i]);
}
