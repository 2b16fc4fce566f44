/* SPDX-License-Identifier: Apache-2.0 */
/* Finding tools by what they do: the rules one by one, and a table of queries over 52 tools of six
 * servers whose hit rates are printed. */
#include "test.h"

#include "json/write.h"
#include "profile/rank.h"
#include "profile/rank_index.h"

#include <stdio.h>

struct tool {
    const char *name, *description, *properties; /* "path: what it is; …" */
};
struct server {
    const char *name;
    struct tool tools[12];
};

static const struct server servers[] = {
    {"files",
     {{"read_file", "Read the complete contents of a file from the file system.", "path: where"},
      {"write_file", "Create a new file or overwrite an existing one.",
       "path: where; content: text"},
      {"edit_file", "Make line-based edits to a text file.", "path: where; edits: replacements"},
      {"list_directory", "Get a listing of all files and directories in a path.", "path: where"},
      {"create_directory", "Create a new directory or make sure it exists.", "path: where"},
      {"move_file", "Move or rename files and directories.", "source: from; destination: to"},
      {"search_files", "Recursively search for files matching a pattern.", "pattern: glob"},
      {"get_file_info", "Retrieve metadata: size, times, permissions.", "path: where"},
      {"delete_file", "Remove a file for good.", "path: where"}}},
    {"mail",
     {{"send_email", "Sends an email to one or more people.", "to: receivers; subject: s; body: b"},
      {"list_messages", "Lists messages of a mailbox, newest first.",
       "mailbox: which; unread: only"},
      {"read_message", "Returns one message with its headers and body.", "id: which"},
      {"reply_to_message", "Answers a message in its thread.", "id: which; body: text"},
      {"archive_message", "Moves a message out of the inbox.", "id: which"},
      {"create_draft", "Saves a draft without sending it.", "to: receivers; body: text"},
      {"add_attachment", "Attaches a file to a draft.", "draft: which; path: file"},
      {"list_labels", "Lists the labels of an account.", ""}}},
    {"calendar",
     {{"create_event", "Adds an event to a calendar.", "title: t; start: when; attendees: who"},
      {"list_events", "Lists events between two dates.", "from: date; to: date"},
      {"update_event", "Changes time, place or guests of an event.", "id: which; start: when"},
      {"delete_event", "Cancels an event and tells its guests.", "id: which"},
      {"find_free_time", "Finds slots when everybody is available.", "attendees: who; minutes: m"},
      {"set_reminder", "Reminds before an event starts.", "id: which; minutes: before"},
      {"respond_to_invitation", "Accepts or declines an invitation.", "id: which; answer: yes"}}},
    {"github",
     {{"create_issue", "Opens a new issue in a repository.", "repo: which; title: t; body: b"},
      {"list_issues", "Lists issues of a repository by state and label.", "repo: which; state: s"},
      {"add_issue_comment", "Comments on an issue.", "repo: which; number: n; body: text"},
      {"create_pull_request", "Opens a pull request from a branch.", "head: branch; base: branch"},
      {"merge_pull_request", "Merges a pull request.", "number: n; method: squash"},
      {"get_pull_request_diff", "Shows what a pull request changes.", "number: n"},
      {"create_branch", "Creates a branch from a commit.", "name: branch; from: sha"},
      {"search_code", "Searches code across repositories.", "query: q; language: l"},
      {"fork_repository", "Forks a repository to your account.", "repo: which"},
      {"list_commits", "Lists commits of a branch.", "repo: which; sha: branch"},
      {"get_workflow_run_logs", "Downloads the logs of a CI run.", "run_id: which"}}},
    {"postgres",
     {{"query", "Runs a read-only SQL query.", "sql: statement"},
      {"list_tables", "Lists tables of a schema with their sizes.", "schema: which"},
      {"describe_table", "Shows columns, types and indexes of a table.", "table: which"},
      {"explain_query", "Returns the execution plan of a statement.", "sql: statement"},
      {"execute_statement", "Runs a statement that changes rows.", "sql: statement"},
      {"list_slow_queries", "Shows the slowest statements lately.", "limit: n"},
      {"backup_database", "Writes a dump of the whole database.", "path: where"}}},
    {"browser",
     {{"navigate", "Opens a web page in the browser.", "url: address"},
      {"click", "Clicks an element of the page.", "selector: css"},
      {"fill_form", "Types values into form fields.", "fields: values"},
      {"take_screenshot", "Captures a picture of the page.", "full_page: all of it"},
      {"extract_text", "Returns the visible text of the page.", "selector: css"},
      {"evaluate_script", "Executes JavaScript in the page.", "script: code"},
      {"download_file", "Saves a linked file to disk.", "url: address; path: where"},
      {"get_cookies", "Returns the cookies of a site.", "domain: which"},
      {"close_tab", "Closes the current tab.", ""},
      {"wait_for_element", "Waits until an element appears.", "selector: css"}}},
};

static const struct {
    const char *query, *tool;
} table[] = {
    {"send an email", "mail:send_email"},
    {"email my boss", "mail:send_email"},
    {"show me the unread mail", "mail:list_messages"},
    {"answer this message", "mail:reply_to_message"},
    {"attach a pdf to a draft", "mail:add_attachment"},
    {"write an email but do not send it yet", "mail:create_draft"},
    {"clean up my inbox", "mail:archive_message"},
    {"read a file", "files:read_file"},
    {"open a text document", "files:read_file"},
    {"what is in this folder", "files:list_directory"},
    {"make a new folder", "files:create_directory"},
    {"rename a file", "files:move_file"},
    {"remove a file", "files:delete_file"},
    {"find files by name", "files:search_files"},
    {"how big is this file", "files:get_file_info"},
    {"change a line in a file", "files:edit_file"},
    {"save text to a file", "files:write_file"},
    {"schedule a meeting", "calendar:create_event"},
    {"what is on my calendar this week", "calendar:list_events"},
    {"move a meeting to another time", "calendar:update_event"},
    {"cancel an appointment", "calendar:delete_event"},
    {"when is everyone free", "calendar:find_free_time"},
    {"decline an invitation", "calendar:respond_to_invitation"},
    {"report a bug", "github:create_issue"},
    {"open tickets of a repo", "github:list_issues"},
    {"comment on an issue", "github:add_issue_comment"},
    {"merge a PR pull request", "github:merge_pull_request"},
    {"what does this pull request change", "github:get_pull_request_diff"},
    {"search the code of our repositories", "github:search_code"},
    {"why did the CI run fail", "github:get_workflow_run_logs"},
    {"make a new branch", "github:create_branch"},
    {"run a sql query", "postgres:query"},
    {"which columns does the table have", "postgres:describe_table"},
    {"which queries are slow", "postgres:list_slow_queries"},
    {"dump the database", "postgres:backup_database"},
    {"delete rows from a table", "postgres:execute_statement"},
    {"open a website", "browser:navigate"},
    {"take a picture of the page", "browser:take_screenshot"},
    {"fill in a form", "browser:fill_form"},
    {"run javascript on the page", "browser:evaluate_script"},
};

static struct arena *mem;
static struct catalog *catalogs[countof(servers)];
static struct rank_candidate all[128];
static size_t n_all;

static void write_tool(struct js_writer *w, const struct tool *t)
{
    struct str rest = str_of(t->properties);

    js_object(w);
    js_kv_string(w, "name", str_of(t->name));
    js_kv_string(w, "description", str_of(t->description));
    js_key(w, STR("inputSchema"));
    js_object(w);
    js_kv_string(w, "type", STR("object"));
    js_key(w, STR("properties"));
    js_object(w);
    while (rest.n) {
        struct str about = str_trim(str_split(&rest, ';')), name = str_split(&about, ':');
        js_key(w, name);
        js_object(w);
        js_kv_string(w, "description", about);
        js_object_end(w);
    }
    js_object_end(w);
    js_object_end(w);
    js_object_end(w);
}

static struct catalog *catalog_of(const struct server *s)
{
    struct catalog *c = catalog_new(MCP_LEGACY);
    struct str cursor;
    struct js_writer w;
    struct error err;
    struct js_doc doc;
    struct buf text;

    buf_init(&text, 1 << 20);
    js_begin(&w, &text);
    js_object(&w);
    js_key(&w, STR("tools"));
    js_array(&w);
    for (const struct tool *t = s->tools; t < s->tools + countof(s->tools) && t->name; t++)
        write_tool(&w, t);
    js_array_end(&w);
    js_object_end(&w);
    assert_true(js_parse(buf_str(&text), &js_limits_upstream, mem, &doc, NULL));
    assert_true(catalog_take_page(c, CATALOG_TOOLS, &doc, js_root(&doc), &cursor, &err));
    buf_release(&text);
    return c;
}

static void begin(void)
{
    mem = arena_new(1 << 24);
    n_all = 0;
    for (size_t s = 0; s < countof(servers); s++) {
        catalogs[s] = catalog_of(&servers[s]);
        for (size_t i = 0; i < catalogs[s]->lists[CATALOG_TOOLS].n; i++)
            all[n_all++] = (struct rank_candidate){str_of(servers[s].name), catalogs[s], i, 0};
    }
}

static void end(void)
{
    for (size_t s = 0; s < countof(servers); s++)
        catalog_unref(catalogs[s]);
    arena_free(mem);
}

static size_t rank(const char *query)
{
    return rank_tools(all, n_all, str_of(query), 0, mem);
}

static const char *name_at(size_t i)
{
    return arena_printf(mem, "%.*s:%.*s", STR_ARG(all[i].server),
                        STR_ARG(all[i].catalog->lists[CATALOG_TOOLS].items[all[i].item].name))
        .p;
}

TEST(test_rank__finds_what_the_table_of_queries_expects)
{
    size_t first = 0, five = 0;

    begin();
    for (size_t w = 0; w < countof(table); w++) {
        size_t n = rank(table[w].query), at = 0;
        while (at < n && strcmp(name_at(at), table[w].tool) != 0)
            at++;
        first += at < n && at == 0;
        five += at < n && at < 5;
        if (at)
            printf("  \"%s\": %s is %s%zu; first is %s (%.2f)\n", table[w].query, table[w].tool,
                   at < n ? "number " : "not among ", at < n ? at + 1 : n, n ? name_at(0) : "-",
                   n ? all[0].confidence : 0);
    }
    printf("  %zu tools, %zu queries: first %zu, among five %zu\n", n_all, countof(table), first,
           five);
    assert_int_equal(n_all, 52);
    assert_int_equal(countof(table), 40);
    assert_true(first >= 33);
    assert_true(five >= 39);
    end();
}

TEST(test_rank__a_name_that_is_said_is_first_with_full_confidence)
{
    begin();
    assert_true(rank("list_tables") > 0);
    assert_string_equal(name_at(0), "postgres:list_tables");
    assert_true(all[0].confidence == 1);
    assert_true(rank("github:list_commits") > 0);
    assert_string_equal(name_at(0), "github:list_commits");
    end();
}

TEST(test_rank__the_name_of_a_server_lists_its_tools_in_order)
{
    begin();
    assert_int_equal(rank("calendar"), 7);
    assert_string_equal(name_at(0), "calendar:create_event");
    assert_string_equal(name_at(6), "calendar:respond_to_invitation");
    assert_int_equal(rank(" Mail | CALENDAR "), 15);
    end();
}

TEST(test_rank__a_server_before_a_colon_is_the_only_one_looked_at)
{
    begin();
    size_t n = rank("browser: delete a file");
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++)
        assert_true(str_eq(all[i].server, STR("browser")));
    assert_string_equal(name_at(0), "browser:download_file");
    end();
}

TEST(test_rank__several_queries_each_find_their_own)
{
    begin();
    assert_true(rank("send an email | take a screenshot") >= 2);
    const char *one = name_at(0), *two = name_at(1);
    assert_true((!strcmp(one, "mail:send_email") && !strcmp(two, "browser:take_screenshot")) ||
                (!strcmp(two, "mail:send_email") && !strcmp(one, "browser:take_screenshot")));
    end();
}

TEST(test_rank__nothing_said_is_everything_in_order)
{
    begin();
    assert_int_equal(rank(""), n_all);
    assert_string_equal(name_at(0), "files:read_file");
    assert_int_equal(rank(" | "), n_all);
    end();
}

TEST(test_rank__what_nobody_can_do_is_not_found)
{
    begin();
    assert_int_equal(rank("xylophone zebra"), 0);
    end();
}

TEST(test_rank__a_threshold_leaves_out_what_fits_less)
{
    begin();
    size_t some = rank("send an email");
    double best = all[0].confidence;
    assert_true(best > 0.5 && best < 1);
    size_t fewer = rank_tools(all, n_all, STR("send an email"), best, mem);
    assert_true(fewer >= 1 && fewer < some);
    assert_int_equal(rank_tools(all, n_all, STR("send an email"), 1, mem), 0);
    end();
}

TEST(test_rank__confidence_never_leaves_its_range)
{
    static const char *const queries[] = {
        "the", "a the of", "file file file file",
        "ü",   "|||a|",    "path path selector sql statement which"};
    begin();
    for (size_t i = 0; i < countof(queries); i++) {
        rank(queries[i]);
        for (size_t k = 0; k < n_all; k++)
            assert_true(all[k].confidence >= 0 && all[k].confidence <= 1);
    }
    end();
}

TEST(test_rank__a_long_query_is_read_up_to_its_limit)
{
    struct buf text;

    begin();
    buf_init(&text, 1 << 20);
    for (unsigned i = 0; i < RANK_QUERIES_BYTES; i++)
        buf_addc(&text, ' ');
    buf_addz(&text, "calendar");
    assert_int_equal(rank_tools(all, n_all, buf_str(&text), 0, mem), n_all); /* nothing was said */
    assert_int_equal(rank_tools(all, n_all, str_n(text.p + 8, RANK_QUERIES_BYTES), 0, mem), 7);
    buf_release(&text);
    end();
}

TEST(test_rank__words_that_no_tool_knows_hardly_lower_the_confidence)
{
    begin();
    rank("send an email");
    double alone = all[0].confidence;
    rank("send an email xylophone");
    assert_string_equal(name_at(0), "mail:send_email");
    assert_true(all[0].confidence < alone && all[0].confidence > 0.8 * alone);
    end();
}

TEST(test_rank__what_destroys_is_not_first_unless_it_is_said)
{
    static const char *const said[] = {"delete a calendar event", "get rid of the calendar event",
                                       "throw the calendar event away"};
    begin();
    rank("a calendar event");
    assert_string_not_equal(name_at(0), "calendar:delete_event");
    for (size_t i = 0; i < countof(said); i++) {
        rank(said[i]);
        assert_string_equal(name_at(0), "calendar:delete_event");
    }
    end();
}

TEST(test_rank__a_phrase_may_have_three_words_inside)
{
    begin();
    rank("throw yon blue file away");
    assert_string_equal(name_at(0), "files:delete_file");
    rank("throw yon blue big file away");
    assert_string_not_equal(name_at(0), "files:delete_file");
    end();
}

static bool finds_calendar_after(unsigned unknown, const char *word)
{
    struct buf text;
    bool found;

    begin();
    buf_init(&text, 1 << 20);
    for (unsigned i = 0; i < unknown; i++)
        if (*word)
            buf_addf(&text, "%s ", word);
        else
            buf_addf(&text, "zz%c%cx ", 'a' + (int)(i / 26), 'a' + (int)(i % 26));
    buf_addz(&text, "calendar");
    found = rank_tools(all, n_all, buf_str(&text), 0, mem) > 0;
    buf_release(&text);
    end();
    return found;
}

TEST(test_rank__a_query_is_read_up_to_its_limits)
{
    assert_true(finds_calendar_after(RANK_TERMS_MAX - 1, ""));
    assert_false(finds_calendar_after(RANK_TERMS_MAX, ""));
    assert_true(finds_calendar_after(RANK_QUERY_WORDS - 1, "please"));
    assert_false(finds_calendar_after(RANK_QUERY_WORDS, "please"));
}

static bool finds_word_after(unsigned others)
{
    struct server one = {"one", {{"tool", NULL, ""}}};
    struct rank_candidate candidate = {STR("one"), NULL, 0, 0};
    struct buf text;

    mem = arena_new(1 << 24);
    buf_init(&text, 1 << 20);
    for (unsigned i = 0; i < others; i++)
        buf_addz(&text, "blue ");
    buf_addz(&text, "xylophone");
    one.tools[0].description = text.p;
    candidate.catalog = catalog_of(&one);
    bool found = rank_tools(&candidate, 1, STR("xylophone"), 0, mem) == 1;
    catalog_unref(candidate.catalog);
    buf_release(&text);
    arena_free(mem);
    return found;
}

TEST(test_rank__a_tool_is_read_up_to_its_limit)
{
    assert_true(finds_word_after(RANK_WORDS_MAX - 2)); /* its name is one */
    assert_false(finds_word_after(RANK_WORDS_MAX - 1));
}

TEST(test_rank__without_tools_nothing_is_found)
{
    mem = arena_new(1 << 20);
    assert_int_equal(rank_tools(all, 0, STR("read"), 0, mem), 0);
    arena_free(mem);
}

/* A catalog of n tools, each with a description of `bytes` bytes. */
static struct catalog *large_catalog(unsigned n, size_t bytes)
{
    struct catalog *c = catalog_new(MCP_LEGACY);
    struct arena *own = arena_new(1u << 30);
    struct str cursor;
    struct error err;
    struct js_doc doc;
    struct buf page;

    buf_init(&page, 1u << 30);
    buf_addz(&page, "{\"tools\":[");
    for (unsigned i = 0; i < n; i++) {
        buf_addf(&page, "%s{\"name\":\"tool%u\",\"description\":\"", i ? "," : "", i);
        for (size_t k = 0; k < bytes / 8; k++)
            buf_addf(&page, "wo%05zu ", (i * 7919 + k) % 99991);
        buf_addz(&page, "\"}");
    }
    buf_addz(&page, "]}");
    assert_true(js_parse(buf_str(&page), &js_limits_upstream, own, &doc, NULL));
    assert_true(catalog_take_page(c, CATALOG_TOOLS, &doc, js_root(&doc), &cursor, &err));
    buf_release(&page);
    arena_free(own);
    return c;
}

TEST(test_rank_index__reads_no_more_than_a_slice_at_a_time)
{
    struct catalog *c = large_catalog(2000, 1024);
    size_t before = 0, steps = 0;
    bool done;

    do {
        size_t bytes = 0;
        done = rank_index_step(c);
        for (size_t i = before; i + 1 < c->words->n_read; i++)
            bytes += c->lists[CATALOG_TOOLS].items[i].raw.n;
        assert_true(bytes < RANK_SLICE_BYTES);
        assert_true(c->words->n_read - before <= RANK_SLICE_TOOLS);
        before = c->words->n_read;
        steps++;
    } while (!done);
    assert_int_equal(c->words->n_read, 2000);
    assert_true(steps >= 2000 * 1024 / (RANK_SLICE_BYTES + 2048));
    assert_true(rank_index_step(c)); /* and not again */
    catalog_unref(c);
}

TEST(test_rank_index__counts_small_tools_too)
{
    struct catalog *c = large_catalog(RANK_SLICE_TOOLS + 1, 0);

    assert_false(rank_index_step(c));
    assert_int_equal(c->words->n_read, RANK_SLICE_TOOLS);
    assert_true(rank_index_step(c));
    catalog_unref(c);
}

static size_t words_of_one(size_t bytes)
{
    struct catalog *c = large_catalog(1, bytes);
    size_t n = rank_index_of(c)->n;

    catalog_unref(c);
    return n;
}

TEST(test_rank_index__of_a_huge_definition_the_name_alone_counts)
{
    /* {"name":"tool0","description":""} are 33 bytes. */
    assert_true(words_of_one(RANK_DEFINITION_MAX - 40) > 100);
    assert_true(words_of_one(RANK_DEFINITION_MAX + 8) <= 3);
}
