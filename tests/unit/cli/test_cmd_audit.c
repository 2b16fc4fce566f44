/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast audit on a data directory that nobody runs on: what it prints and how it exits. */
#include "audit_db.h"

#include "audit/event_id.h"
#include "cli/cli.h"
#include "json/read.h"
#include "retention/store/family.h"

#include <fcntl.h>
#include <sqlite3.h>

/* Of an event that is gone, the command asks for the checkpoint of its removal. */
__attribute__((constructor)) static void register_families(void)
{
    store_family_add(&retention_store);
}

/* The command table names all commands; those that would bring the whole gateway along are not
 * ours. */
int cmd_up(struct cli *cli)
{
    (void)cli;
    return 1;
}
int cmd_help(struct cli *cli)
{
    (void)cli;
    return 1;
}

/* Three calls (ok, tool_error, open) and an anchor, as a stopped daemon leaves them. */
static void fill(struct audit_db *db)
{
    char path[128];
    audit_db_open(db, false);
    for (int i = 0; i < 3; i++) {
        struct event_row intent = audit_db_event(EVENT_INTENT, STR("default"));
        intent.at_ms = clock_wall_ms() - 7200000 + i;
        intent.session_id = STR("0190aaaa-bbbb-7ccc-8ddd-eeeeffff0000");
        audit_db_body(&intent, STR("{\"name\":\"echo\"}"));
        audit_db_write(db, (struct event_row *[]){&intent}, 1);
        struct event_row outcome = intent;
        outcome.id = outcome.seq = 0;
        outcome.kind = EVENT_OUTCOME;
        outcome.outcome = i == 0 ? STR("ok") : STR("tool_error");
        outcome.duration_us = 1500;
        audit_db_body(&outcome, STR("{\"content\":[]}"));
        if (i < 2)
            audit_db_write(db, (struct event_row *[]){&outcome}, 1);
    }
    audit_db_anchor(db);
    store_close(db->store);
    db->store = NULL;
    FILE *f = fopen(audit_db_path(db, "audit-anchors.jsonl", path).p, "w");
    fwrite(db->anchor_lines.p, 1, db->anchor_lines.n, f);
    fclose(f);
}

struct run {
    int status;
    char out[16384], err[4096];
};

static void read_back(int fd, char *text, size_t size)
{
    ssize_t n = pread(fd, text, size - 1, 0);
    assert_true(n >= 0);
    text[n] = '\0';
}

static int redirect(int fd, int *ret_saved)
{
    char name[] = "/tmp/holdfast-out-XXXXXX";
    int file = mkstemp(name);
    assert_true(file >= 0);
    unlink(name);
    *ret_saved = dup(fd);
    dup2(file, fd);
    return file;
}

/* Runs `holdfast audit …`, the words separated by blanks, with --data behind them. */
static void audit(struct run *r, struct audit_db *db, const char *words)
{
    char line[512], *argv[CLI_MAX_ARGS + 2] = {"holdfast", "audit"};
    int argc = 2, saved_out, saved_err;
    snprintf(line, sizeof(line), "%s --data %s", words, db->dir);
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    fflush(stdout);
    fflush(stderr);
    int out = redirect(1, &saved_out), err = redirect(2, &saved_err);
    r->status = cli_main(argc, argv);
    fflush(stdout);
    fflush(stderr);
    dup2(saved_out, 1);
    dup2(saved_err, 2);
    read_back(out, r->out, sizeof(r->out));
    read_back(err, r->err, sizeof(r->err));
    close(out);
    close(err);
    close(saved_out);
    close(saved_err);
}

static int lines(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

TEST(test_cmd_audit__lists_one_line_per_execution_newest_first)
{
    struct audit_db db;
    struct run r;
    fill(&db);
    audit(&r, &db, "list");
    assert_int_equal(r.status, 0);
    assert_int_equal(lines(r.out), 4);
    const char *open = strstr(r.out, "open"), *failed = strstr(r.out, "✘ tool_error"),
               *ok = strstr(r.out, "✔ ok");
    assert_true(open && failed && ok && open < failed && failed < ok);
    assert_null(strchr(r.out, 27));
    audit(&r, &db, "tail -n 2");
    assert_int_equal(lines(r.out), 3);
    assert_true(strstr(r.out, "tool_error") < strstr(r.out, "open"));
    audit_db_close(&db);
}

TEST(test_cmd_audit__filters)
{
    static const struct {
        const char *words;
        int rows;
    } cases[] = {
        {"list --json", 3},
        {"list --json --outcome tool_error", 1},
        {"list --json --outcome open", 1},
        {"list --json --limit 2", 2},
        {"list --json --server files --tool echo", 3},
        {"list --json --server session", 0},
        {"list --json --session 0190aaaa", 3},
        {"list --json --since 1h", 0},
        {"list --json --since 3h", 3},
        {"tail --json", 3},
    };
    struct audit_db db;
    struct run r;
    fill(&db);
    for (size_t i = 0; i < countof(cases); i++) {
        audit(&r, &db, cases[i].words);
        assert_int_equal(r.status, 0);
        if (lines(r.out) != cases[i].rows)
            fail_msg("%s: %s", cases[i].words, r.out);
        struct str rest = str_of(r.out);
        while (rest.n > 0) {
            struct str line = str_split(&rest, '\n');
            struct arena *mem = arena_new(1 << 20);
            struct js_doc doc;
            assert_true(js_parse(line, &js_limits_request, mem, &doc, NULL));
            assert_non_null(js_get(&doc, js_root(&doc), STR("outcome")));
            arena_free(mem);
        }
    }
    audit_db_close(&db);
}

TEST(test_cmd_audit__shows_an_execution_with_both_bodies)
{
    struct audit_db db;
    struct run r;
    char words[64], id[EVENT_ID_TEXT];
    fill(&db);
    snprintf(words, sizeof(words), "show %s", event_id_format(event_id_make(db.writer, 2), id));
    audit(&r, &db, words);
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.out, "\"name\": \"echo\""));
    assert_non_null(strstr(r.out, "\"content\": []"));
    snprintf(words, sizeof(words), "show --json %s",
             event_id_format(event_id_make(db.writer, 1), id));
    audit(&r, &db, words);
    assert_int_equal(lines(r.out), 1);
    audit(&r, &db, "show 99.1");
    assert_int_equal(r.status, 1);
    assert_non_null(strstr(r.err, "no event 99.1"));
    audit_db_close(&db);
}

TEST(test_cmd_audit__verifies_and_exits_eight_when_the_chain_is_broken)
{
    struct audit_db db;
    struct run r;
    char path[128];
    sqlite3 *raw;
    fill(&db);
    audit(&r, &db, "verify");
    if (r.status != 0)
        fail_msg("%s", r.err);
    assert_true(strncmp(r.out, "chain ok: 6 events, 1 writers, last anchor 20", 45) == 0);
    audit(&r, &db, "verify --json");
    assert_true(strncmp(r.out, "{\"ok\":true,\"events\":6,", 22) == 0);
    assert_int_equal(sqlite3_open(audit_db_path(&db, "holdfast.db", path).p, &raw), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(raw, "DELETE FROM events WHERE id & 1099511627775 >= 5", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(raw);
    audit(&r, &db, "verify");
    assert_int_equal(r.status, 8);
    assert_string_equal(r.out, "");
    assert_non_null(strstr(r.err, ".5 is missing"));
    audit_db_close(&db);
}

TEST(test_cmd_audit__says_what_is_wrong_with_its_words)
{
    static const struct {
        const char *words;
        int status;
    } cases[] = {
        {"", 2},
        {"look", 2},
        {"list extra", 2},
        {"show", 2},
        {"show x", 2},
        {"list --limit 0", 2},
        {"list --limit 10000", 0},
        {"list --limit 1000000001", 2},
        {"tail -n 0", 2},
        {"list --server other", 1},
        {"list --tool other", 1},
        {"list --session 0190aaab", 1},
        {"list --outcome bad", 2},
        {"list --since soon", 2},
        {"verify --url http://127.0.0.1:1", 2},
        {"list --url http://127.0.0.1:1", 4},
    };
    struct audit_db db;
    struct run r;
    fill(&db);
    for (size_t i = 0; i < countof(cases); i++) {
        audit(&r, &db, cases[i].words);
        if (r.status != cases[i].status)
            fail_msg("%s: %d, %s", cases[i].words, r.status, r.err);
    }
    audit_db_close(&db);
}

TEST(test_cmd_audit__says_where_it_looked_when_there_is_no_database)
{
    struct audit_db db;
    struct run r;
    char path[128];
    fill(&db);
    unlink(audit_db_path(&db, "holdfast.db", path).p);
    audit(&r, &db, "list");
    assert_int_equal(r.status, 1);
    assert_non_null(strstr(r.err, db.dir));
    audit_db_close(&db);
}
