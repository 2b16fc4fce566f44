/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that share one PostgreSQL and name the same folder: of a document there is one, and each of
 * its revisions is somebody's. */
#include "test.h"

#include <pthread.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/random.h"
#include "docs/store/family.h"
#include "docs/store/ops.h"
#include "docs/store/verbs.h"

#include "pg_cluster.h"

#define ROUNDS 100
#define PATHS 5

struct node {
    pthread_t thread;
    struct store *store;
    uint8_t number;
    int failed;
    int64_t made[PATHS][ROUNDS + 1]; /* the revisions it was told of */
    size_t n_made[PATHS];
};

static void *revise_many(void *arg)
{
    struct node *node = arg;
    for (int i = 0; i < ROUNDS; i++) {
        char id[UUID_TEXT], path[16];
        struct error err;
        size_t which = (size_t)i * PATHS / ROUNDS; /* both come to each new one at once */
        random_uuid7(id);
        snprintf(path, sizeof(path), "%zu.md", which);
        struct document_row document = {
            .id = str_of(id), .folder = STR("notes"), .path = str_of(path)};
        struct revision_row revision = {.at_ms = 1,
                                        .kind = STR("outside"),
                                        .sha256 = {node->number, (uint8_t)i},
                                        .content = str_of(path)};
        struct document_revise rows = {.document = &document, .revision = &revision};
        struct store_op op = op_document_revise(&rows);
        if (!store_write(node->store, &op, 1, &err) || op.verdict != VERDICT_OK)
            node->failed++;
        node->made[which][node->n_made[which]++] = revision.revision;
    }
    return NULL;
}

/* Every number from 1 to the newest, each given once. */
static void assert_each_once(const struct node nodes[2], size_t which, int64_t newest)
{
    size_t at[2] = {0};
    assert_int_equal(nodes[0].n_made[which] + nodes[1].n_made[which], newest);
    for (int64_t i = 1; i <= newest; i++) {
        int whose = nodes[0].made[which][at[0]] == i ? 0 : 1;
        assert_int_equal(nodes[whose].made[which][at[whose]++], i);
    }
}

TEST(test_postgres_documents__two_nodes_revise_one_document)
{
    static struct node nodes[2];
    char url[PG_URL_MAX], name[32];
    struct document_row *row = NULL;
    struct error err;
    if (!pg_cluster_url())
        skip_because("no PostgreSQL to start");
    store_family_add(&docs_store);
    snprintf(name, sizeof(name), "documents_%d", (int)getpid());
    pg_database_make(name);
    pg_database_url(name, url);
    struct store_config config = {.path = str_of(url)};
    struct arena *mem = arena_new(1 << 20);
    for (int i = 0; i < 2; i++) {
        nodes[i] = (struct node){.number = (uint8_t)(i + 1)};
        if (!store_open_postgres(&config, &nodes[i].store, &err))
            fail_msg("%s", err.text);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&nodes[i].thread, NULL, revise_many, &nodes[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(nodes[i].thread, NULL);
    assert_int_equal(nodes[0].failed + nodes[1].failed, 0);
    for (size_t i = 0; i < PATHS; i++) {
        assert_true(store_document(nodes[0].store, STR("notes"), arena_printf(mem, "%zu.md", i),
                                   mem, &row, &err));
        assert_int_equal(row->revision, 2 * ROUNDS / PATHS);
        assert_each_once(nodes, i, row->revision);
    }
    for (int i = 0; i < 2; i++)
        store_close(nodes[i].store);
    arena_free(mem);
    pg_database_drop(name);
}
