/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines from outside: each runs in a process of its own, as the shell would run it. */
#include "cli/cli.h"
#include "json/read.h"
#include "products.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct run {
    int status;
    char out[16384], err[4096];
};

static void read_back(FILE *f, char *text, size_t size)
{
    ssize_t n = pread(fileno(f), text, size - 1, 0);
    assert_true(n >= 0);
    text[n] = '\0';
    fclose(f);
}

/* `line` is split at blanks; the first word is "holdfast". */
static struct run run(const char *line)
{
    struct run r = {0};
    FILE *out = tmpfile(), *err = tmpfile();
    char words[1024], *argv[64] = {NULL}, *at = words, *word;
    int argc = 0;

    snprintf(words, sizeof(words), "%s", line);
    while ((word = strsep(&at, " ")) && argc < 63)
        argv[argc++] = word;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (dup2(fileno(out), 1) < 0 || dup2(fileno(err), 2) < 0)
            _exit(99);
        products_register();
        int status = cli_main(argc, argv);
        fflush(NULL);
        _exit(status);
    }
    assert_int_equal(waitpid(pid, &r.status, 0), pid);
    assert_true(WIFEXITED(r.status));
    r.status = WEXITSTATUS(r.status);
    read_back(out, r.out, sizeof(r.out));
    read_back(err, r.err, sizeof(r.err));
    return r;
}

static void check_refused(const char *line, int status, const char *first_line)
{
    struct run r = run(line);
    assert_int_equal(r.status, status);
    assert_string_equal(r.out, "");
    r.err[strcspn(r.err, "\n")] = '\0';
    assert_string_equal(r.err, first_line);
}

static void check_says(const char *line, const char *part)
{
    struct run r = run(line);
    if (r.status != 0 || !strstr(r.out, part) || r.err[0])
        fail_msg("%s: status %d, stdout %s, stderr %s", line, r.status, r.out, r.err);
}

TEST(test_cli__every_row_is_complete_and_its_examples_parse)
{
    const struct cli_command *c;

    products_register();
    for (size_t k = 0; (c = cli_command_at(k)); k++) {
        int n_flags = 0;
        assert_non_null(c->run);
        assert_int_equal(c->summary[strlen(c->summary) - 1], '.');
        for (const struct cli_flag *f = c->flags; f && f->name; f++, n_flags++) {
            assert_int_equal(f->name[0], '-');
            assert_non_null(f->help);
        }
        assert_true(n_flags <= CLI_MAX_FLAGS);
        for (size_t i = 0; i < countof(c->examples); i++) {
            char words[256], *argv[32], *at = words, *word;
            struct cli cli = {0};
            int argc = 0, status = 0;
            assert_non_null(c->examples[i]);
            snprintf(words, sizeof(words), "%s", c->examples[i]);
            while ((word = strsep(&at, " ")))
                argv[argc++] = word;
            assert_string_equal(argv[0], "holdfast");
            assert_string_equal(argv[1], c->name);
            assert_true(cli_parse(&cli, c, argc - 2, argv + 2, &status));
        }
    }
}

TEST(test_cli__help_is_everywhere_and_on_stdout)
{
    const struct cli_command *c;
    char line[64], first[32]; /* of the summary, whose lines are broken */
    products_register();
    for (size_t k = 0; (c = cli_command_at(k)); k++) {
        snprintf(first, sizeof(first), "%s", c->summary);
        snprintf(line, sizeof(line), "holdfast %s --help", c->name);
        check_says(line, first);
        snprintf(line, sizeof(line), "holdfast %s -h", c->name);
        check_says(line, first);
        snprintf(line, sizeof(line), "holdfast help %s", c->name);
        check_says(line, first);
        check_says("holdfast", first);
    }
    check_says("holdfast --help", "usage: holdfast COMMAND");
    check_says("holdfast -h", "usage: holdfast COMMAND");
}

static void check_width(const struct buf *help)
{
    struct str text = buf_str(help);

    while (text.n) {
        struct str line = str_split(&text, '\n');
        if (str_starts(line, STR("examples:")))
            return; /* they stay whole, to be copied */
        if (line.n > 80)
            fail_msg("%.*s", STR_ARG(line));
    }
}

TEST(test_cli__help_fits_80_columns_and_lists_every_command_in_a_group)
{
    const struct cli_command *c;
    struct buf all, one;
    char entry[64];

    products_register();
    buf_init(&all, 1 << 20);
    cli_help_all(&all);
    check_width(&all);
    for (size_t k = 0; (c = cli_command_at(k)); k++) {
        snprintf(entry, sizeof(entry), "\n  %-10s ", c->name);
        assert_non_null(strstr(all.p, entry));
        buf_init(&one, 1 << 20);
        cli_help_command(c, &one);
        check_width(&one);
        buf_release(&one);
    }
    buf_release(&all);
}

TEST(test_cli__help_is_shown_even_beside_other_flags)
{
    check_says("holdfast up --config x --help", "usage: holdfast up");
}

TEST(test_cli__unknown_commands_suggest_only_what_is_near)
{
    check_refused("holdfast verison", 2,
                  "holdfast: there is no command \"verison\"; did you mean \"version\"?");
    check_refused("holdfast adit", 2,
                  "holdfast: there is no command \"adit\"; did you mean \"audit\"?");
    check_refused("holdfast launch", 2,
                  "holdfast: there is no command \"launch\"; see holdfast help");
    check_refused("holdfast u", 2, "holdfast: there is no command \"u\"; did you mean \"up\"?");
    check_refused("holdfast operate", 2,
                  "holdfast: there is no command \"operate\"; see holdfast help");
}

TEST(test_cli__unknown_flags_suggest_the_nearest)
{
    check_refused("holdfast up --lisen x", 2,
                  "holdfast: unknown flag --lisen; did you mean --listen?");
    check_refused("holdfast up --jso", 2, "holdfast: unknown flag --jso; see holdfast up --help");
    check_refused("holdfast version --jsn=1", 2,
                  "holdfast: unknown flag --jsn; did you mean --json?");
    check_refused("holdfast up -x", 2, "holdfast: unknown flag -x; see holdfast up --help");
    check_refused("holdfast up --hlp", 2, "holdfast: unknown flag --hlp; did you mean --help?");
}

TEST(test_cli__flags_and_values_must_match)
{
    check_refused("holdfast up --config", 2, "holdfast: --config needs a value: --config FILE");
    check_refused("holdfast up --config --listen 127.0.0.1:1", 2,
                  "holdfast: --config needs a value: --config FILE");
    check_refused("holdfast version --json=yes", 2,
                  "holdfast: --json takes no value; write --json alone");
    check_refused("holdfast up --log-level loud", 2,
                  "holdfast: the log level is debug, info, warn or error, not \"loud\"");
}

TEST(test_cli__stray_arguments_are_refused)
{
    check_refused("holdfast up now", 2, "holdfast: up takes no argument \"now\"");
    check_refused("holdfast version now", 2, "holdfast: version takes no argument \"now\"");
    check_refused("holdfast config", 2, "holdfast: config needs check or show");
    check_refused("holdfast config check show", 2, "holdfast: config needs check or show");
    check_refused("holdfast help up version", 2,
                  "holdfast: help takes one topic; run holdfast help for the list");
}

static bool parses(struct cli *cli, int argc, const char *const *argv)
{
    int status = 0;
    *cli = (struct cli){0};
    return cli_parse(cli, cli_command_find("up"), argc, (char **)argv, &status);
}

TEST(test_cli_parse__takes_both_spellings_and_the_last_value)
{
    static const char *const argv[] = {"--data",    "a",  "one",   "--data=b=c",
                                       "--listen=", "--", "--data"};
    struct cli cli;

    assert_true(parses(&cli, countof(argv), argv));
    assert_string_equal(cli_flag(&cli, "--data"), "b=c");
    assert_string_equal(cli_flag(&cli, "--listen"), "");
    assert_null(cli_flag(&cli, "--config"));
    assert_int_equal(cli.n_args, 2);
    assert_string_equal(cli.args[0], "one");
    assert_string_equal(cli.args[1], "--data");
}

TEST(test_cli_parse__counts_flags_and_arguments)
{
    const char *argv[CLI_MAX_ARGS + CLI_MAX_FLAGS + 1];
    struct cli cli;

    for (int i = 0; i <= CLI_MAX_FLAGS; i++)
        argv[i] = "--data=x";
    assert_true(parses(&cli, CLI_MAX_FLAGS, argv));
    assert_int_equal(cli.n_given, CLI_MAX_FLAGS);
    assert_false(parses(&cli, CLI_MAX_FLAGS + 1, argv));
    for (int i = 0; i <= CLI_MAX_ARGS; i++)
        argv[i] = "x";
    assert_true(parses(&cli, CLI_MAX_ARGS, argv));
    assert_int_equal(cli.n_args, CLI_MAX_ARGS);
    assert_false(parses(&cli, CLI_MAX_ARGS + 1, argv));
}

TEST(test_cli_help__explains_every_error_code)
{
    char line[64];
    for (int code = ERR_NONE + 1; code < ERR_COUNT; code++) {
        snprintf(line, sizeof(line), "holdfast help %s", error_info((enum err_code)code)->name);
        check_says(line, error_info((enum err_code)code)->help);
    }
    check_refused("holdfast help sesion_not_found", 2,
                  "holdfast: there is no help on \"sesion_not_found\"; did you mean "
                  "\"session_not_found\"?");
    check_refused(
        "holdfast help xyzzy", 2,
        "holdfast: there is no help on \"xyzzy\"; run holdfast help for the list of commands");
}

TEST(test_cli_help__knows_every_exit_status_of_the_error_table)
{
    struct run r = run("holdfast help exit-codes");
    char start[16];

    assert_int_equal(r.status, 0);
    for (int code = ERR_NONE; code < ERR_COUNT; code++) {
        snprintf(start, sizeof(start), "\n%d ", error_info((enum err_code)code)->exit_status);
        assert_true(strstr(r.out, start) || strncmp(r.out, start + 1, strlen(start) - 1) == 0);
    }
}

TEST(test_cli_help__names_the_environment)
{
    check_says("holdfast help environment", "HOLDFAST_CONFIG");
    check_says("holdfast help environment", "NO_COLOR");
}

TEST(test_cli_help__prints_pages_on_demand_only)
{
    check_says("holdfast help --markdown cli", "# Commands\n");
    check_says("holdfast help --markdown config", "mcpServers");
    check_refused("holdfast help --markdown up", 2,
                  "holdfast: --markdown needs the name of a page: config, cli or redaction");
    check_refused("holdfast help --markdown", 2,
                  "holdfast: --markdown needs the name of a page: config, cli or redaction");
}

TEST(test_cli_version__is_data)
{
    struct run r = run("holdfast version");
    assert_string_equal(r.out, "holdfast " HOLDFAST_VERSION "\n");
    r = run("holdfast --version");
    assert_string_equal(r.out, "holdfast " HOLDFAST_VERSION "\n");
    check_says("holdfast version --json", "{\"version\":\"" HOLDFAST_VERSION "\",");
}

TEST(test_cli__errors_are_json_when_data_is)
{
    struct run r = run("holdfast config check --json --config /nonexistent/holdfast.json");
    struct arena *mem = arena_new(1 << 20);
    struct js_doc doc;

    assert_int_equal(r.status, 7);
    assert_string_equal(r.out, "");
    assert_true(js_parse(str_of(r.err), &js_limits_upstream, mem, &doc, NULL));
    const struct js_node *error = js_get(&doc, js_root(&doc), STR("error"));
    assert_str(js_text(&doc, js_get(&doc, error, STR("code")), mem), "config");
    assert_non_null(memmem(r.err, strlen(r.err), "/nonexistent/holdfast.json", 26));
    assert_ptr_equal(strchr(r.err, '\n'), r.err + strlen(r.err) - 1);
    arena_free(mem);
}

struct file {
    char path[64];
};

static struct file config_file(const char *text)
{
    struct file f;
    snprintf(f.path, sizeof(f.path), "/tmp/holdfast-cli-XXXXXX");
    int fd = mkstemp(f.path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    return f;
}

TEST(test_cli_config__check_says_fine_and_notes_what_is_unused)
{
    struct file f =
        config_file("{\"mcpServers\": {\"a\": {\"command\": \"x\", \"autoApprove\": []}}}");
    char line[128], expected[128];

    snprintf(line, sizeof(line), "holdfast config check --config %s", f.path);
    snprintf(expected, sizeof(expected), "%s is fine: 1 server\n", f.path);
    struct run r = run(line);
    assert_int_equal(r.status, 0);
    assert_string_equal(r.out, expected);
    assert_non_null(strstr(r.err, "note: "));
    assert_non_null(strstr(r.err, "autoApprove"));
    snprintf(line, sizeof(line), "holdfast config check --json --config %s", f.path);
    snprintf(expected, sizeof(expected), "{\"ok\":true,\"file\":\"%s\",\"servers\":1,\"notes\":[\"",
             f.path);
    check_says(line, expected);
    unlink(f.path);
}

TEST(test_cli_config__a_bad_file_is_exit_7_with_its_place)
{
    struct file f = config_file("{\n  \"holdfast\": {\"lisen\": \"127.0.0.1:1\"}\n}");
    char line[128];

    snprintf(line, sizeof(line), "holdfast config check --config %s", f.path);
    struct run r = run(line);
    assert_int_equal(r.status, 7);
    assert_string_equal(r.out, "");
    assert_non_null(strstr(r.err, ":2:16: "));
    assert_non_null(strstr(r.err, "listen"));
    snprintf(line, sizeof(line), "holdfast up --config %s --data /nonexistent/data", f.path);
    assert_int_equal(run(line).status, 7);
    unlink(f.path);
}

TEST(test_cli_config__show_prints_json_without_secrets)
{
    struct file f = config_file("{\"mcpServers\": {\"a\": {\"command\": \"x\", "
                                "\"env\": {\"API_TOKEN\": \"hunter2\"}}}}");
    struct arena *mem = arena_new(1 << 20);
    struct js_doc doc;
    char line[128];

    snprintf(line, sizeof(line), "holdfast config show --config %s", f.path);
    struct run r = run(line);
    assert_int_equal(r.status, 0);
    assert_true(js_parse(str_of(r.out), &js_limits_upstream, mem, &doc, NULL));
    assert_non_null(js_get(&doc, js_root(&doc), STR("mcpServers")));
    assert_non_null(strstr(r.out, "API_TOKEN"));
    assert_null(strstr(r.out, "hunter2"));
    arena_free(mem);
    unlink(f.path);
}

TEST(test_cli__escapes_what_it_repeats_on_a_terminal)
{
    struct run r = run("holdfast \033[31mred");
    assert_int_equal(r.status, 2);
    assert_null(strchr(r.err, '\033'));
}

TEST(test_cli_print__a_full_disk_is_said)
{
    struct run r = {0};
    FILE *err = tmpfile();

    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (!freopen("/dev/full", "w", stdout) || dup2(fileno(err), 2) < 0)
            _exit(99);
        char *argv[] = {"holdfast", "version", NULL};
        _exit(cli_main(2, argv));
    }
    assert_int_equal(waitpid(pid, &r.status, 0), pid);
    assert_int_equal(WEXITSTATUS(r.status), 1);
    read_back(err, r.err, sizeof(r.err));
    assert_non_null(strstr(r.err, "No space left"));
}

TEST(test_cli_colour__follows_the_conventions)
{
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    unsetenv("CLICOLOR_FORCE");
    FILE *f = tmpfile();
    assert_false(cli_colour(fileno(f)));
    setenv("CLICOLOR_FORCE", "1", 1);
    assert_true(cli_colour(fileno(f)));
    setenv("CLICOLOR_FORCE", "0", 1);
    assert_false(cli_colour(fileno(f)));
    setenv("CLICOLOR_FORCE", "1", 1);
    setenv("NO_COLOR", "1", 1);
    assert_false(cli_colour(fileno(f)));
    fclose(f);
}
