/* SPDX-License-Identifier: Apache-2.0 */
/* The remembered eras: a map that is read from and written to a small text file. */
#include "upstream/eras.h"

#include "base/log.h"
#include "base/map.h"

#include <stdio.h>
#include <stdlib.h>

#define LINE_MAX_BYTES 512 /* a name has at most 64 characters */

struct remembered {
    struct era_entry entry;
    struct str name; /* stored behind this struct */
};

struct eras {
    struct map by_name; /* → struct remembered */
    char *path, *fresh; /* NULL: not saved; `fresh` is written, then renamed */
    bool is_changed;
};

static void put(struct eras *e, struct str server, const struct era_entry *entry)
{
    struct remembered *r = map_get(&e->by_name, server);

    if (!r && e->by_name.n >= ERAS_MAX)
        return;
    if (!r) {
        r = xcalloc(1, sizeof(*r) + server.n);
        r->name = str_n(memcpy(r + 1, server.p, server.n), server.n);
        map_put(&e->by_name, r->name, r);
    }
    r->entry = *entry;
}

static bool read_hex(const char *hex, uint8_t ret[ERAS_DEFINITION])
{
    for (size_t i = 0; i < ERAS_DEFINITION; i++) {
        unsigned byte;
        if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
            return false;
        ret[i] = (uint8_t)byte;
    }
    return true;
}

/* "files 03ab… legacy 77fe…"; other lines are skipped. */
static void read_line(struct eras *e, const char *line)
{
    char name[128], hex[2 * ERAS_DEFINITION + 1], era[16];
    unsigned long long identity;
    struct era_entry entry = {0};

    if (sscanf(line, "%127s %64s %15s %16llx", name, hex, era, &identity) != 4 ||
        strlen(hex) != sizeof(hex) - 1 || !read_hex(hex, entry.definition))
        return;
    entry.identity = identity;
    entry.refuses_initialize = strcmp(era, "modern-only") == 0;
    entry.era = strcmp(era, "legacy") == 0 ? MCP_LEGACY : MCP_MODERN;
    if (entry.era == MCP_LEGACY || entry.refuses_initialize || strcmp(era, "modern") == 0)
        put(e, str_of(name), &entry);
}

struct eras *eras_open(struct str path)
{
    struct eras *e = xcalloc(1, sizeof(*e));
    char line[LINE_MAX_BYTES];
    FILE *file;

    map_init(&e->by_name);
    if (!path.p)
        return e;
    e->path = xcalloc(1, path.n + 1);
    e->fresh = xcalloc(1, path.n + 5);
    memcpy(e->path, path.p, path.n);
    snprintf(e->fresh, path.n + 5, "%s.new", e->path);
    file = fopen(e->path, "re");
    while (file && fgets(line, sizeof(line), file))
        read_line(e, line);
    if (file)
        fclose(file);
    return e;
}

static void write_entry(FILE *file, const struct remembered *r)
{
    const char *era = r->entry.era == MCP_LEGACY    ? "legacy"
                      : r->entry.refuses_initialize ? "modern-only"
                                                    : "modern";

    fprintf(file, "%.*s ", STR_ARG(r->name));
    for (size_t i = 0; i < ERAS_DEFINITION; i++)
        fprintf(file, "%02x", r->entry.definition[i]);
    fprintf(file, " %s %016llx\n", era, (unsigned long long)r->entry.identity);
}

/* Not synced: eras lost in a power cut are found again. */
void eras_save(struct eras *e)
{
    struct str name;
    void *value;
    FILE *file;
    bool ok;

    if (!e->is_changed || !e->path)
        return;
    e->is_changed = false;
    file = fopen(e->fresh, "we");
    for (size_t at = 0; file && map_next(&e->by_name, &at, &name, &value);)
        write_entry(file, value);
    ok = file && !ferror(file);
    if (file && fclose(file) != 0)
        ok = false;
    if (!ok || rename(e->fresh, e->path) != 0)
        log_warn("the protocol versions of servers could not be saved; they are asked again after "
                 "the next start",
                 LZ("file", e->path));
}

void eras_free(struct eras *e)
{
    struct str name;
    void *value;

    eras_save(e);
    for (size_t at = 0; map_next(&e->by_name, &at, &name, &value);)
        free(value);
    map_release(&e->by_name);
    free(e->path);
    free(e->fresh);
    free(e);
}

const struct era_entry *eras_find(struct eras *e, struct str server,
                                  const uint8_t definition[ERAS_DEFINITION])
{
    const struct remembered *r = map_get(&e->by_name, server);
    bool same = r && memcmp(r->entry.definition, definition, ERAS_DEFINITION) == 0;
    return same ? &r->entry : NULL;
}

void eras_put(struct eras *e, struct str server, const struct era_entry *entry)
{
    const struct era_entry *old = eras_find(e, server, entry->definition);

    if (old && old->identity == entry->identity && old->era == entry->era &&
        old->refuses_initialize == entry->refuses_initialize)
        return;
    put(e, server, entry);
    e->is_changed = true;
}

void eras_forget(struct eras *e, struct str server)
{
    struct remembered *r = map_get(&e->by_name, server);

    if (!r)
        return;
    map_remove(&e->by_name, server);
    free(r);
    e->is_changed = true;
}
