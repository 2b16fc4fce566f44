/* SPDX-License-Identifier: Apache-2.0 */
/* The spool: what was put survives a death, once, whole, and says so when it cannot be read. */
#include "store_files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fault.h"
#include "store/spool.h"

struct world {
    struct files files;
    struct spool *spool;
    struct arena *mem;
    struct error err;
};

static void open_spool(struct world *w)
{
    if (!spool_open(str_of(w->files.db), &w->spool, &w->err))
        fail_msg("%s", w->err.text);
}

static void world_init(struct world *w)
{
    *w = (struct world){.mem = arena_new(64 << 20)};
    files_init(&w->files);
    open_spool(w);
}

static void world_release(struct world *w)
{
    char path[128];
    spool_close(w->spool);
    arena_free(w->mem);
    snprintf(path, sizeof(path), "%s-journal", w->files.db);
    unlink(path);
    files_release(&w->files);
}

static struct spooled outcome(int64_t exec, const char *word)
{
    struct spooled one = {
        .event = {.tenant = STR("default"),
                  .owner = STR("local"),
                  .at_ms = 1763197323456,
                  .kind = EVENT_OUTCOME,
                  .exec = exec,
                  .id = 77, /* of a try that failed */
                  .seq = 5,
                  .session_id = STR("s1"),
                  .server = STR("files"),
                  .method = STR("tools/call"),
                  .tool = STR("echo"),
                  .outcome = str_of(word),
                  .duration_us = 1500,
                  .body_len = 20,
                  .body = STR("{\"content\":[]}")},
    };
    memset(one.event.body_sha, 1, 32);
    memset(one.event.stored_sha, 2, 32);
    memset(one.intent_mac, (int)(exec & 0xff), 32);
    if (exec % 2 == 0)
        return one;
    one.undelivered = (struct undelivered_row){.id = 100 + exec,
                                               .session_id = STR("s1"),
                                               .created_ms = 5,
                                               .expires_ms = 6,
                                               .sealed = STR("\001sealed")};
    memset(one.undelivered.digest, 3, 32);
    return one;
}

static bool put(struct world *w, int64_t exec, const char *word)
{
    struct spooled one = outcome(exec, word);
    struct spool_change change = {.put = &one};
    return spool_write(w->spool, &change, 1, &w->err);
}

static int64_t count(struct world *w)
{
    int64_t n = -1;
    if (!spool_count(w->spool, &n, &w->err))
        fail_msg("%s", w->err.text);
    return n;
}

TEST(test_spool__gives_back_what_was_put_after_it_was_opened_again)
{
    struct world w;
    struct spooled *list;
    size_t n;
    world_init(&w);
    assert_true(put(&w, 9, "ok"));
    assert_true(put(&w, 4, "tool_error"));
    spool_close(w.spool);
    open_spool(&w);
    assert_true(spool_page(w.spool, 0, 10, w.mem, &list, &n, &w.err));
    assert_int_equal(n, 2);
    assert_int_equal(list[0].event.exec, 4);
    assert_int_equal(list[1].event.exec, 9);
    const struct event_row *e = &list[1].event;
    assert_int_equal(e->kind, EVENT_OUTCOME);
    assert_int_equal(e->id, 0);
    assert_int_equal(e->seq, 0);
    assert_int_equal(e->at_ms, 1763197323456);
    assert_int_equal(e->duration_us, 1500);
    assert_int_equal(e->body_len, 20);
    assert_str(e->outcome, "ok");
    assert_str(e->tool, "echo");
    assert_str(e->body, "{\"content\":[]}");
    assert_null(e->error.p);
    struct spooled same = outcome(9, "ok");
    assert_memory_equal(e->body_sha, same.event.body_sha, 32);
    assert_memory_equal(e->stored_sha, same.event.stored_sha, 32);
    assert_memory_equal(list[1].intent_mac, same.intent_mac, 32);
    const struct undelivered_row *u = &list[1].undelivered;
    assert_int_equal(u->id, 109);
    assert_str(u->tenant, "default");
    assert_str(u->owner, "local");
    assert_str(u->session_id, "s1");
    assert_int_equal(u->exec, 9);
    assert_int_equal(u->created_ms, 5);
    assert_int_equal(u->expires_ms, 6);
    assert_str(u->sealed, "\001sealed");
    assert_memory_equal(u->digest, same.undelivered.digest, 32);
    assert_int_equal(list[0].undelivered.id, 0);
    world_release(&w);
}

TEST(test_spool__the_first_outcome_of_an_execution_stays)
{
    struct world w;
    struct spooled *list;
    size_t n;
    world_init(&w);
    assert_true(put(&w, 3, "ok"));
    assert_true(put(&w, 3, "error"));
    assert_true(spool_page(w.spool, 0, 10, w.mem, &list, &n, &w.err));
    assert_int_equal(n, 1);
    assert_str(list[0].event.outcome, "ok");
    world_release(&w);
}

TEST(test_spool__takes_away_what_is_named_and_minds_nothing_else)
{
    struct world w;
    world_init(&w);
    for (int64_t exec = 1; exec <= 5; exec++)
        assert_true(put(&w, exec, "ok"));
    struct spooled six = outcome(6, "ok");
    struct spool_change changes[] = {{.exec = 2}, {.exec = 99}, {.put = &six}, {.exec = 4}};
    assert_true(spool_write(w.spool, changes, countof(changes), &w.err));
    assert_int_equal(count(&w), 4);
    world_release(&w);
}

TEST(test_spool__pages_go_on_after_the_last)
{
    struct world w;
    struct spooled *list;
    size_t n;
    world_init(&w);
    for (int64_t exec = 1; exec <= 5; exec++)
        assert_true(put(&w, exec, "ok"));
    assert_true(spool_page(w.spool, 0, 2, w.mem, &list, &n, &w.err));
    assert_int_equal(n, 2);
    assert_true(spool_page(w.spool, list[1].event.exec, 200, w.mem, &list, &n, &w.err));
    assert_int_equal(n, 3);
    assert_int_equal(list[0].event.exec, 3);
    assert_true(spool_page(w.spool, 5, 2, w.mem, &list, &n, &w.err));
    assert_int_equal(n, 0);
    world_release(&w);
}

TEST(test_spool__what_was_said_to_be_written_survives_a_kill)
{
    struct world w;
    int ends[2];
    char byte;
    world_init(&w);
    spool_close(w.spool);
    w.spool = NULL;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        open_spool(&w);
        for (int64_t exec = 1; put(&w, exec, "ok"); exec++)
            if (write(ends[1], "x", 1) != 1)
                break;
        _exit(1);
    }
    close(ends[1]);
    int64_t said = 0;
    while (said < 20 && read(ends[0], &byte, 1) == 1)
        said++;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    while (read(ends[0], &byte, 1) == 1)
        said++;
    close(ends[0]);
    open_spool(&w);
    assert_true(count(&w) >= said && count(&w) <= said + 1);
    world_release(&w);
}

TEST(test_spool__the_file_is_its_owners_alone)
{
    struct world w;
    struct stat st;
    world_init(&w);
    assert_int_equal(stat(w.files.db, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    world_release(&w);
}

TEST(test_spool__a_file_that_is_something_else_is_refused_in_words)
{
    static const char *const wrecks[] = {"CREATE TABLE outcomes (x)", "PRAGMA user_version = 2"};
    struct world w;
    struct spool *s = NULL;
    world_init(&w);
    spool_close(w.spool);
    w.spool = NULL;
    unlink(w.files.db);
    files_exec(&w.files, wrecks[1]);
    assert_false(spool_open(str_of(w.files.db), &s, &w.err));
    assert_int_equal(w.err.code, ERR_CONFIG);
    assert_non_null(strstr(w.err.text, "newer"));
    int fd = open(w.files.db, O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, "this is no database, but it is long enough", 42), 42);
    close(fd);
    assert_false(spool_open(str_of(w.files.db), &s, &w.err));
    assert_int_equal(w.err.code, ERR_CONFIG);
    assert_non_null(strstr(w.err.text, "move it away"));
    unlink(w.files.db);
    files_exec(&w.files, wrecks[0]); /* no columns of ours */
    open_spool(&w);
    assert_false(put(&w, 1, "ok"));
    world_release(&w);
}

TEST(test_spool__a_record_that_cannot_be_read_is_told)
{
    struct world w;
    struct spooled *list;
    size_t n;
    world_init(&w);
    files_exec(&w.files, "INSERT INTO outcomes (exec, intent_mac, record) "
                         "VALUES (1, zeroblob(32), x'0102')");
    assert_false(spool_page(w.spool, 0, 10, w.mem, &list, &n, &w.err));
    assert_int_equal(w.err.code, ERR_CONFIG);
    world_release(&w);
}

TEST(test_spool__goes_on_after_a_failed_commit)
{
    struct world w;
    world_init(&w);
    assert_true(put(&w, 1, "ok"));
    fault_load("spool.commit:1");
    assert_false(put(&w, 2, "ok"));
    assert_int_equal(w.err.code, ERR_UNAVAILABLE);
    fault_load("");
    assert_int_equal(count(&w), 1);
    assert_true(put(&w, 3, "ok"));
    assert_int_equal(count(&w), 2);
    world_release(&w);
}
