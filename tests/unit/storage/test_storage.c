/* SPDX-License-Identifier: Apache-2.0 */
/* What a start does about a database that is not there, and about what an earlier one left. */
#include "test.h"

#include "base/clock.h"
#include "base/log.h"
#include "storage.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct world {
    char dir[64];
    struct arena *mem;
    struct storage_config config;
    struct error err;
};

static void world_init(struct world *w, const char *url)
{
    *w = (struct world){.dir = "/tmp/holdfast-storage-XXXXXX", .mem = arena_new(1 << 20)};
    log_setup(LOG_ERROR + 1, 0);
    assert_non_null(mkdtemp(w->dir));
    w->config = (struct storage_config){.data_dir = str_of(w->dir), .patience_ms = 700};
    assert_true(database_choose(str_of(url), str_of(w->dir), w->mem, &w->config.database, &w->err));
}

static void world_release(struct world *w)
{
    char command[128];
    arena_free(w->mem);
    snprintf(command, sizeof(command), "rm -r %s", w->dir);
    assert_int_equal(system(command), 0);
}

TEST(test_storage__a_database_that_does_not_come_is_unreachable_and_its_password_stays_secret)
{
    struct world w;
    struct storage *g = NULL;
    world_init(&w, "postgresql://u:secret@/x?host=/nonexistent/socket");
    int64_t began = clock_mono_ms();
    assert_false(storage_open(&w.config, &g, &w.err));
    assert_int_equal(w.err.code, ERR_UNREACHABLE);
    assert_int_equal(error_info(w.err.code)->exit_status, 4);
    assert_true(clock_mono_ms() - began >= 200); /* it was tried again */
    assert_null(strstr(w.err.text, "secret"));
    assert_non_null(strstr(w.err.text, "postgresql://u@/x"));
    assert_null(g);
    world_release(&w);
}

TEST(test_storage__what_cannot_become_right_is_not_waited_for)
{
    struct world w;
    struct storage *g = NULL;
    world_init(&w, "postgresql://u:secret@[bad/x");
    w.config.patience_ms = 60000;
    assert_false(storage_open(&w.config, &g, &w.err));
    assert_int_equal(w.err.code, ERR_CONFIG);
    assert_null(strstr(w.err.text, "secret"));
    world_release(&w);
}

TEST(test_storage__on_sqlite_it_stands_alone_and_leaves_without_a_trace)
{
    struct world w;
    struct storage *g = NULL;
    world_init(&w, NULL);
    for (int64_t start = 1; start <= 2; start++) {
        assert_true(storage_open(&w.config, &g, &w.err));
        assert_false(storage_is_shared(g));
        assert_null(storage_spool(g));
        assert_int_equal(storage_writer(g)->number, start);
        struct loop *loop = loop_new();
        struct lanes *lanes = storage_run(g, loop);
        storage_stop(g);
        lanes_free(lanes);
        loop_free(loop);
        storage_close(g);
    }
    world_release(&w);
}
