/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper with real processes: what they inherit, what is left when they end, how starting
 * fails. */
#include "process.h"

#include "base/fault.h"
#include "upstream/keeper.h"
#include "upstream/keeper_env.h"
#include "upstream/keeper_wire.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct world {
    struct loop *loop;
    struct keeper *keeper;
};

/* One spawn and what became of it.  Stdout is gathered when asked for. */
struct spawn {
    struct world *w;
    unsigned id;
    int started, failed, exited;
    int status;
    struct keeper_child process;
    struct error why;
    char out[65536];
    size_t n_out;
};

static void world_open(struct world *w)
{
    struct error err;
    w->loop = loop_new();
    assert_true(keeper_start(&w->keeper, &err));
    keeper_attach(w->keeper, w->loop);
}

static void world_close(struct world *w)
{
    keeper_stop(w->keeper);
    loop_free(w->loop);
}

static void on_started(void *arg, const struct keeper_child *process)
{
    struct spawn *s = arg;
    s->started++;
    s->process = *process;
}

static void on_failed(void *arg, const struct error *err)
{
    struct spawn *s = arg;
    s->failed++;
    s->why = *err;
}

static void on_exited(void *arg, int status)
{
    struct spawn *s = arg;
    s->exited++;
    s->status = status;
}

static const struct keeper_events events = {on_started, on_failed, on_exited};

static void spawn(struct world *w, struct spawn *s, const struct server_config *server)
{
    memset(s, 0, sizeof(*s));
    s->w = w;
    s->process.in = s->process.out = s->process.err = -1;
    s->id = keeper_spawn(w->keeper, server, &events, s);
}

static void spawn_close(struct spawn *s)
{
    int *fds[] = {&s->process.in, &s->process.out, &s->process.err};
    for (size_t i = 0; i < countof(fds); i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

static bool is_started(void *arg)
{
    struct spawn *s = arg;
    return s->started || s->failed;
}

static bool is_over(void *arg)
{
    struct spawn *s = arg;
    return s->exited || s->failed;
}

static void wait_started(struct spawn *s)
{
    assert_true(wait_for(s->w->loop, is_started, s, PEER_WAIT_MS));
    assert_int_equal(s->started, 1);
}

static void wait_over(struct spawn *s)
{
    assert_true(wait_for(s->w->loop, is_over, s, PEER_WAIT_MS));
}

/* Reads stdout until it holds `text`. */
static void read_until(struct spawn *s, const char *text)
{
    while (!memmem(s->out, s->n_out, text, strlen(text))) {
        struct pollfd p = {.fd = s->process.out, .events = POLLIN};
        assert_int_equal(poll(&p, 1, PEER_WAIT_MS), 1);
        ssize_t n = read(s->process.out, s->out + s->n_out, sizeof(s->out) - s->n_out - 1);
        assert_true(n > 0);
        s->n_out += (size_t)n;
    }
}

/* The grandchild's pid from {"grandchild":N}. */
static int read_grandchild(struct spawn *s)
{
    read_until(s, "}\n");
    return atoi(strstr(s->out, ":") + 1);
}

/* Starts a mode that has a grandchild; gives handles on both. */
static void spawn_family(struct world *w, struct spawn *s, const char *mode, int *ret_child,
                         int *ret_grandchild)
{
    spawn(w, s, peer_server(mode, NULL));
    wait_started(s);
    *ret_grandchild = process_watch(read_grandchild(s));
    *ret_child = process_watch(s->process.pid);
}

static size_t count_fds(int pid)
{
    char path[64];
    size_t n = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void read_proc(int pid, const char *file, char *ret, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    ssize_t n = read(fd, ret, size - 1);
    assert_true(n >= 0);
    ret[n] = '\0';
    close(fd);
}

static bool has_no_children(void *arg)
{
    char path[64], text[256];
    int pid = *(int *)arg;
    snprintf(path, sizeof(path), "task/%d/children", pid);
    read_proc(pid, path, text, sizeof(text));
    return text[0] == '\0';
}

/* How many ["KIND",…] lines came. */
static size_t count_lines(const struct spawn *s, const char *kind)
{
    char start[32];
    size_t n = 0;
    snprintf(start, sizeof(start), "[\"%s\",", kind);
    for (const char *at = strstr(s->out, start); at; at = strstr(at + 1, start))
        n++;
    return n;
}

static bool env_is_listed(const char *pair)
{
    static const char *const names[] = {"PATH=", "HOME=",   "USER=",  "LOGNAME=", "LANG=", "LC_",
                                        "TZ=",   "TMPDIR=", "SHELL=", "TERM=",    "XDG_"};
    static const char *const network[] = {
        "NODE_EXTRA_CA_CERTS=", "SSL_CERT_FILE=",     "SSL_CERT_DIR=",       "REQUESTS_CA_BUNDLE=",
        "CURL_CA_BUNDLE=",      "PIP_CERT=",          "AWS_CA_BUNDLE=",      "GIT_SSL_CAINFO=",
        "npm_config_noproxy=",  "npm_config_cafile=", "NPM_CONFIG_NOPROXY=", "NPM_CONFIG_CAFILE="};
    size_t n = strcspn(pair, "=");
    if (n > 6 &&
        (strncmp(pair + n - 6, "_PROXY", 6) == 0 || strncmp(pair + n - 6, "_proxy", 6) == 0))
        return strncmp(pair, "HOLDFAST_", 9) != 0;
    for (size_t i = 0; i < countof(network); i++)
        if (strncmp(pair, network[i], strlen(network[i])) == 0)
            return true;
    for (size_t i = 0; i < countof(names); i++)
        if (strncmp(pair, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

TEST(test_keeper__environment_of_a_child_is_the_list_and_what_is_declared)
{
    struct config_pair declared[] = {{STR("TOKEN"), STR("a=b c")}, {STR("LANG"), STR("eo")}};
    struct world w;
    struct spawn s;
    size_t expected = 1;
    setenv("HOLDFAST_SECRET", "x", 1);
    setenv("DATABASE_URL", "x", 1);
    setenv("PATHOLOGICAL", "x", 1);
    setenv("LC_ALL", "C", 1);
    setenv("LANG", "C", 1);
    setenv("XDG_CACHE_HOME", "/nowhere", 1);
    world_open(&w);
    struct server_config *server = peer_server("inherited", NULL);
    server->env = declared;
    server->n_env = countof(declared);
    spawn(&w, &s, server);
    wait_started(&s);
    read_until(&s, "{\"done\":true}");
    for (char **e = environ; *e; e++)
        expected += env_is_listed(*e);
    assert_int_equal(count_lines(&s, "env"), expected);
    assert_non_null(strstr(s.out, "[\"env\",\"TOKEN=a=b c\"]"));
    assert_non_null(strstr(s.out, "[\"env\",\"LANG=eo\"]"));
    assert_non_null(strstr(s.out, "[\"env\",\"LC_ALL=C\"]"));
    assert_non_null(strstr(s.out, "[\"env\",\"XDG_CACHE_HOME=/nowhere\"]"));
    assert_null(strstr(s.out, "HOLDFAST_"));
    assert_null(strstr(s.out, "DATABASE_URL"));
    assert_null(strstr(s.out, "PATHOLOGICAL"));
    spawn_close(&s);
    world_close(&w);
}

TEST(test_keeper__a_child_gets_proxies_authorities_and_what_it_asks_for)
{
    struct config_pair declared[] = {{STR("ASKED_TWICE"), STR("declared")}};
    struct str asked[] = {STR("ASKED"),     STR("ASKED_*"),    STR("REDIS_URL"),
                          STR("DATABASE*"), STR("HOLDFAST_*"), STR("UNSET")};
    struct world w;
    struct spawn s;
    setenv("https_proxy", "http://proxy:1", 1);
    setenv("NODE_EXTRA_CA_CERTS", "/ca.pem", 1);
    setenv("HOLDFAST_SECRET_PROXY", "x", 1);
    setenv("DATABASE_URL", "x", 1);
    setenv("REDIS_URL", "named in full", 1);
    setenv("ASKED", "exactly", 1);
    setenv("ASKED_MORE", "by prefix", 1);
    setenv("ASKED_TWICE", "inherited", 1);
    setenv("ASKEDNOT", "x", 1);
    world_open(&w);
    struct server_config *server = peer_server("inherited", NULL);
    server->env = declared;
    server->n_env = countof(declared);
    server->inherit_env = asked;
    server->n_inherit_env = countof(asked);
    spawn(&w, &s, server);
    wait_started(&s);
    read_until(&s, "{\"done\":true}");
    assert_non_null(strstr(s.out, "[\"env\",\"https_proxy=http://proxy:1\"]"));
    assert_non_null(strstr(s.out, "[\"env\",\"NODE_EXTRA_CA_CERTS=/ca.pem\"]"));
    assert_non_null(strstr(s.out, "[\"env\",\"ASKED=exactly\"]"));
    assert_non_null(strstr(s.out, "[\"env\",\"ASKED_MORE=by prefix\"]"));
    assert_non_null(strstr(s.out, "[\"env\",\"ASKED_TWICE=declared\"]"));
    assert_non_null(strstr(s.out, "[\"env\",\"REDIS_URL=named in full\"]"));
    assert_null(strstr(s.out, "inherited\"]"));
    assert_null(strstr(s.out, "ASKEDNOT"));
    assert_null(strstr(s.out, "DATABASE_URL"));
    assert_null(strstr(s.out, "HOLDFAST_"));
    server->inherit_env = NULL;
    server->n_inherit_env = 0;
    spawn_close(&s);
    world_close(&w);
}

TEST(test_keeper__a_hint_names_what_a_server_does_not_get)
{
    struct config_pair declared[] = {{STR("DECLARED_TOKEN"), STR("x")}};
    struct str asked[] = {STR("ASKED_*")};
    struct server_config server = {
        .env = declared, .n_env = 1, .inherit_env = asked, .n_inherit_env = 1};
    char **before = environ, names[40];
    static char *ours[] = {"DECLARED_TOKEN=x", "ASKED_TOKEN=x",    "HOLDFAST_TOKEN=x", "HOME=/",
                           "A_TOKEN=secret",   "B_API_KEY=secret", "PLAIN=x",          NULL};
    environ = ours;
    child_env_hint(&server, names, sizeof(names));
    assert_string_equal(names, "A_TOKEN, B_API_KEY");
    child_env_hint(&server, names, 12);
    assert_string_equal(names, "A_TOKEN");
    server.n_inherit_env = 0;
    child_env_hint(&server, names, sizeof(names));
    assert_string_equal(names, "ASKED_TOKEN, A_TOKEN, B_API_KEY");
    environ = before;
}

TEST(test_keeper__child_starts_clean_of_descriptors_signals_and_privileges)
{
    struct world w;
    struct spawn s;
    int leaky = open("/dev/null", O_RDONLY); /* no O_CLOEXEC */
    sigset_t usr2, before;
    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    sigprocmask(SIG_BLOCK, &usr2, &before);
    world_open(&w);
    struct server_config *server = peer_server("inherited", NULL);
    server->cwd = STR("/usr/bin/../share");
    spawn(&w, &s, server);
    wait_started(&s);
    read_until(&s, "{\"done\":true}");
    assert_int_equal(count_lines(&s, "fd"), 3);
    assert_non_null(strstr(s.out, "[\"fd\",\"0\"]"));
    assert_non_null(strstr(s.out, "[\"fd\",\"1\"]"));
    assert_non_null(strstr(s.out, "[\"fd\",\"2\"]"));
    assert_non_null(strstr(s.out, "SigBlk:0000000000000000"));
    assert_non_null(strstr(s.out, "SigIgn:0000000000000000"));
    assert_non_null(strstr(s.out, "NoNewPrivs:1"));
    assert_non_null(strstr(s.out, "[\"core\",0,0]"));
    assert_non_null(strstr(s.out, "[\"session\",true]"));
    assert_non_null(strstr(s.out, "[\"cwd\",\"/usr/share\"]"));
    spawn_close(&s);
    world_close(&w);
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(leaky);
}

TEST(test_keeper__exit_status_is_told_once_after_the_start)
{
    struct world w;
    struct spawn s;
    world_open(&w);
    spawn(&w, &s, peer_server("exit", "7"));
    assert_int_equal(s.started, 0); /* never from inside keeper_spawn() */
    wait_over(&s);
    assert_int_equal(s.started, 1);
    assert_int_equal(s.exited, 1);
    assert_true(WIFEXITED(s.status));
    assert_int_equal(WEXITSTATUS(s.status), 7);
    spawn_close(&s);
    world_close(&w);
}

TEST(test_keeper__two_hundred_spawns_leave_no_descriptor_and_no_process)
{
    struct server_config server = {.name = STR("true"), .command = STR("true")};
    struct world w;
    struct spawn s;
    world_open(&w);
    int pid = keeper_pid(w.keeper);
    spawn(&w, &s, &server);
    wait_over(&s);
    spawn_close(&s);
    size_t ours = count_fds(getpid()), keepers = count_fds(pid);
    for (int i = 0; i < 200; i++) {
        spawn(&w, &s, &server);
        wait_over(&s);
        assert_int_equal(s.exited, 1);
        spawn_close(&s);
    }
    assert_int_equal(count_fds(getpid()), ours);
    assert_int_equal(count_fds(pid), keepers);
    assert_true(wait_for(w.loop, has_no_children, &pid, PEER_WAIT_MS));
    world_close(&w);
}

TEST(test_keeper__grandchildren_are_gone_when_the_exit_is_told)
{
    static const char *const modes[] = {"stubborn", "daemon"};
    struct world w;
    struct spawn s;
    int child, grandchild;
    world_open(&w);
    for (size_t i = 0; i < countof(modes); i++) {
        spawn_family(&w, &s, modes[i], &child, &grandchild);
        keeper_kill(w.keeper, s.id, SIGKILL);
        wait_over(&s);
        assert_true(WIFSIGNALED(s.status));
        assert_int_equal(WTERMSIG(s.status), SIGKILL);
        assert_true(process_ended(&child, 0));
        assert_true(process_ended(&grandchild, 0));
        spawn_close(&s);
    }
    world_close(&w);
}

TEST(test_keeper__end_of_one_child_leaves_the_orphans_of_another)
{
    struct world w;
    struct spawn a, b;
    int child_a, daemon_a, child_b, daemon_b;
    world_open(&w);
    spawn_family(&w, &a, "daemon", &child_a, &daemon_a);
    spawn_family(&w, &b, "daemon", &child_b, &daemon_b);
    close(a.process.in);
    a.process.in = -1;
    wait_over(&a);
    assert_int_equal(WEXITSTATUS(a.status), 0);
    assert_true(process_ended(&daemon_a, 0));
    assert_true(process_ended(&child_a, 0));
    assert_false(process_ended(&daemon_b, 0));
    assert_false(process_ended(&child_b, 0));
    world_close(&w);
    assert_true(process_ended(&daemon_b, 0));
    assert_true(process_ended(&child_b, 0));
    spawn_close(&a);
    spawn_close(&b);
}

/* Plays Holdfast in a process of its own, tells the pids of its family and waits to be killed. */
static void run_owner(int report)
{
    struct world w;
    struct spawn s;
    int fds[2], pids[3];
    world_open(&w);
    spawn_family(&w, &s, "stubborn", &fds[0], &fds[1]);
    pids[0] = keeper_pid(w.keeper);
    pids[1] = s.process.pid;
    pids[2] = read_grandchild(&s);
    if (write(report, pids, sizeof(pids)) < 0)
        _exit(1);
    for (;;)
        pause();
}

TEST(test_keeper__nothing_outlives_a_killed_owner)
{
    int report[2], pids[3], watched[3];
    assert_int_equal(pipe(report), 0);
    pid_t owner = fork();
    if (owner == 0)
        run_owner(report[1]);
    struct pollfd p = {.fd = report[0], .events = POLLIN};
    assert_int_equal(poll(&p, 1, PEER_WAIT_MS), 1);
    assert_int_equal(read(report[0], pids, sizeof(pids)), sizeof(pids));
    for (int i = 0; i < 3; i++)
        watched[i] = process_watch(pids[i]);
    kill(owner, SIGKILL);
    waitpid(owner, NULL, 0);
    for (int i = 0; i < 3; i++)
        assert_true(process_ended(&watched[i], KEEPER_END_MS));
    close(report[0]);
    close(report[1]);
}

static int parent_of(int pid)
{
    char text[512];
    int parent = 0;
    char state;
    read_proc(pid, "stat", text, sizeof(text));
    assert_int_equal(sscanf(strrchr(text, ')') + 1, " %c %d", &state, &parent), 2);
    return parent;
}

static bool is_up_again(void *arg)
{
    const int *old = ((void **)arg)[0];
    const struct keeper *k = ((void **)arg)[1];
    return keeper_is_up(k) && keeper_pid(k) > 0 && keeper_pid(k) != *old;
}

static void kill_keeper(struct world *w)
{
    int old = keeper_pid(w->keeper);
    void *arg[] = {&old, w->keeper};
    kill(old, SIGKILL);
    assert_true(wait_for(w->loop, is_up_again, arg, PEER_WAIT_MS));
}

TEST(test_keeper__its_own_death_ends_the_children_and_is_told)
{
    struct world w;
    struct spawn s;
    int child, grandchild;
    world_open(&w);
    spawn_family(&w, &s, "stubborn", &child, &grandchild);
    kill(keeper_pid(w.keeper), SIGKILL);
    wait_over(&s);
    assert_int_equal(s.exited, 1);
    assert_true(WIFSIGNALED(s.status));
    assert_true(process_ended(&child, KEEPER_END_MS));
    assert_true(process_ended(&grandchild, KEEPER_END_MS));
    spawn_close(&s);
    world_close(&w);
}

TEST(test_keeper__another_one_replaces_it_as_often_as_it_dies)
{
    struct world w;
    struct spawn s;
    int child, grandchild;
    world_open(&w);
    for (int i = 0; i < 3; i++) {
        kill_keeper(&w);
        spawn(&w, &s, peer_server("exit", "5"));
        wait_over(&s);
        assert_int_equal(WEXITSTATUS(s.status), 5);
        spawn_close(&s);
    }
    spawn_family(&w, &s, "stubborn", &child, &grandchild);
    int last = process_watch(keeper_pid(w.keeper));
    world_close(&w);
    assert_true(process_ended(&last, 0));
    assert_true(process_ended(&child, 0));
    assert_true(process_ended(&grandchild, 0));
    spawn_close(&s);
}

static bool is_down(void *arg)
{
    return !keeper_is_up(arg);
}

TEST(test_keeper__without_its_zygote_it_works_on_and_its_death_is_final)
{
    struct world w;
    struct spawn s;
    world_open(&w);
    kill(parent_of(keeper_pid(w.keeper)), SIGKILL);
    spawn(&w, &s, peer_server("exit", "6"));
    wait_over(&s);
    assert_int_equal(WEXITSTATUS(s.status), 6);
    spawn_close(&s);
    kill(keeper_pid(w.keeper), SIGKILL);
    assert_true(wait_for(w.loop, is_down, w.keeper, PEER_WAIT_MS));
    spawn(&w, &s, peer_server("echo", NULL));
    assert_int_equal(s.failed, 0);
    wait_over(&s);
    assert_int_equal(s.failed, 1);
    assert_int_equal(s.why.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(s.why.text, "restart Holdfast"));
    world_close(&w);
}

static bool is_given_pid(void *arg, const struct tree_process *p)
{
    return p->pid == *(const pid_t *)arg;
}

/* It may have forked what the same pass did not see. */
TEST(test_keeper_tree__a_zombie_is_found_too)
{
    siginfo_t info;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(tree_kill(is_given_pid, &pid), 1);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(tree_kill(is_given_pid, &pid), 0);
}

/* Processes whose command line holds `mark`. */
static size_t count_marked(const char *mark)
{
    char text[4096];
    size_t n = 0;
    DIR *dir = opendir("/proc");
    assert_non_null(dir);
    for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        int pid = atoi(d->d_name);
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
        int fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        ssize_t got = fd >= 0 ? read(fd, text, sizeof(text)) : 0;
        if (fd >= 0)
            close(fd);
        n += got > 0 && memmem(text, (size_t)got, mark, strlen(mark)) != NULL;
    }
    closedir(dir);
    return n;
}

/* A process that forks and exits may slip through one look, hardly through so many. */
static bool is_marked_gone(void *arg)
{
    for (int i = 0; i < 20; i++)
        if (count_marked(arg) > 0)
            return false;
    return true;
}

static bool is_marked_there(void *arg)
{
    return count_marked(arg) > 0;
}

#define HOPPING_KILLS 24

/* Each process of the chain forks its successor and exits, outside of the child's group. */
TEST(test_keeper__nothing_outlives_it_not_even_what_keeps_forking)
{
    char mark[64], script[256];
    struct world w;
    struct str args[] = {STR("-c"), STR_NONE};
    snprintf(mark, sizeof(mark), "hopping-%d", (int)getpid());
    snprintf(script, sizeof(script),
             "setsid sh -c 'h() { h & exit; }; h; : %s' & echo '}'; exec cat", mark);
    args[1] = str_of(script);
    struct server_config server = {
        .name = STR("hopping"), .command = STR("sh"), .args = args, .n_args = 2};
    for (int i = 0; i < HOPPING_KILLS; i++) {
        struct spawn s;
        world_open(&w); /* anew: a keeper that dies young is not replaced at once */
        spawn(&w, &s, &server);
        wait_started(&s);
        read_until(&s, "}");
        assert_true(wait_for(w.loop, is_marked_there, mark, PEER_WAIT_MS));
        if (i % 4)
            kill(keeper_pid(w.keeper), SIGKILL);
        else
            keeper_kill(w.keeper, s.id, SIGKILL);
        wait_over(&s);
        assert_true(wait_for(w.loop, is_marked_gone, mark, PEER_WAIT_MS));
        spawn_close(&s);
        world_close(&w);
    }
}

TEST(test_keeper__family_of_a_killed_minder_ends_too)
{
    struct world w;
    struct spawn s;
    int child, daemon;
    world_open(&w);
    spawn_family(&w, &s, "daemon", &child, &daemon);
    int minder = parent_of(s.process.pid);
    assert_int_equal(parent_of(minder), keeper_pid(w.keeper));
    kill(minder, SIGKILL);
    wait_over(&s);
    assert_int_equal(s.exited, 1);
    assert_true(process_ended(&child, 0));
    assert_true(process_ended(&daemon, KEEPER_END_MS));
    spawn_close(&s);
    world_close(&w);
}

TEST(test_keeper__forgotten_child_is_killed_in_silence)
{
    struct world w;
    struct spawn s, early;
    int child, grandchild;
    world_open(&w);
    spawn_family(&w, &s, "stubborn", &child, &grandchild);
    spawn(&w, &early, peer_server("stubborn", NULL));
    keeper_forget(w.keeper, early.id);
    keeper_forget(w.keeper, s.id);
    assert_true(process_ended(&child, KEEPER_END_MS));
    assert_true(process_ended(&grandchild, KEEPER_END_MS));
    int pid = keeper_pid(w.keeper);
    assert_true(wait_for(w.loop, has_no_children, &pid, PEER_WAIT_MS));
    assert_int_equal(s.exited, 0);
    assert_int_equal(early.started + early.failed + early.exited, 0);
    spawn_close(&s);
    world_close(&w);
}

TEST(test_keeper__signals_that_end_programs_do_not_end_it)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    struct world w;
    struct spawn s;
    world_open(&w);
    spawn(&w, &s, peer_server("exit", "0")); /* it has taken its signals when this is over */
    wait_over(&s);
    spawn_close(&s);
    for (size_t i = 0; i < countof(signals); i++)
        kill(keeper_pid(w.keeper), signals[i]);
    spawn(&w, &s, peer_server("exit", "3"));
    wait_over(&s);
    assert_int_equal(WEXITSTATUS(s.status), 3);
    spawn_close(&s);
    world_close(&w);
}

TEST(test_keeper__shows_its_title_and_none_of_our_environment)
{
    struct world w;
    struct spawn s;
    char text[4096];
    setenv("HOLDFAST_SECRET", "x", 1);
    world_open(&w);
    spawn(&w, &s, peer_server("exit", "0"));
    wait_over(&s);
    read_proc(keeper_pid(w.keeper), "cmdline", text, sizeof(text));
    assert_string_equal(text, "holdfast: keeper");
    read_proc(keeper_pid(w.keeper), "environ", text, sizeof(text));
    for (size_t i = 0; i < sizeof(text) && text[i]; i++)
        assert_int_not_equal(text[i], '=');
    spawn_close(&s);
    world_close(&w);
}

static void assert_fails(struct world *w, const struct server_config *server, const char *text)
{
    struct spawn s;
    spawn(w, &s, server);
    assert_int_equal(s.failed, 0);
    wait_over(&s);
    assert_int_equal(s.started, 0);
    assert_int_equal(s.failed, 1);
    if (!strstr(s.why.text, text))
        fail_msg("\"%s\" lacks \"%s\"", s.why.text, text);
}

static void write_file(char *path, const char *text, int mode)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    fchmod(fd, (mode_t)mode);
    close(fd);
}

TEST(test_keeper__failure_to_start_says_what_to_do)
{
    struct config_pair path[] = {{STR("PATH"), STR("/nowhere:/usr/bin")}};
    char plain[] = "/tmp/keeper-XXXXXX", script[] = "/tmp/keeper-XXXXXX";
    char lost[] = "/tmp/keeper-XXXXXX";
    struct server_config server = {.name = STR("files"), .env = path, .n_env = 1};
    struct world w;
    write_file(plain, "hello", 0644);
    write_file(script, "echo no first line\n", 0755);
    write_file(lost, "#!/nowhere/interpreter\n", 0755);
    world_open(&w);
    server.command = STR("no-such-command");
    assert_fails(&w, &server,
                 "cannot start \"no-such-command\": not found in PATH; install it or give an "
                 "absolute path in mcpServers.files.command (PATH is /nowhere:/usr/bin)");
    server.command = str_of(plain);
    if (geteuid() != 0)
        assert_fails(&w, &server, "Permission denied");
    server.command = str_of(script);
    assert_fails(&w, &server, "Exec format error");
    server.command = str_of(lost);
    assert_fails(&w, &server, "the interpreter its first line names is missing");
    server.command = STR("/nowhere/server");
    assert_fails(&w, &server, "No such file or directory");
    server.command = STR("true");
    server.cwd = STR("/nowhere");
    assert_fails(&w, &server, "cannot enter its working directory");
    int pid = keeper_pid(w.keeper);
    assert_true(wait_for(w.loop, has_no_children, &pid, PEER_WAIT_MS));
    world_close(&w);
    unlink(plain);
    unlink(script);
    unlink(lost);
}

TEST(test_keeper__definition_may_be_as_long_as_the_limit)
{
    struct str arg = {.n = KEEPER_MAX_REQUEST - sizeof(struct keeper_request) - sizeof("true") -
                           sizeof("") - 1};
    struct server_config server = {
        .name = STR("long"), .command = STR("true"), .args = &arg, .n_args = 1};
    char *text = calloc(1, KEEPER_MAX_REQUEST);
    struct world w;
    struct spawn s;
    memset(text, 'x', KEEPER_MAX_REQUEST);
    arg.p = text;
    world_open(&w);
    spawn(&w, &s, &server);
    wait_over(&s);
    assert_int_equal(s.exited, 1);
    spawn_close(&s);
    arg.n++;
    assert_fails(&w, &server, "longer than 131072 bytes; shorten them");
    arg.n = 3;
    text[1] = '\0';
    assert_fails(&w, &server, "NUL byte");
    world_close(&w);
    free(text);
}

TEST(test_keeper__number_of_children_is_limited)
{
    static struct spawn s[KEEPER_MAX_CHILDREN + 1];
    struct server_config server = {.name = STR("cat"), .command = STR("cat")};
    struct world w;
    world_open(&w);
    for (size_t i = 0; i < KEEPER_MAX_CHILDREN; i++)
        spawn(&w, &s[i], &server);
    for (size_t i = 0; i < KEEPER_MAX_CHILDREN; i++)
        wait_started(&s[i]);
    assert_fails(&w, &server, "too many servers are running");
    close(s[0].process.in);
    s[0].process.in = -1;
    wait_over(&s[0]);
    spawn(&w, &s[KEEPER_MAX_CHILDREN], &server);
    wait_started(&s[KEEPER_MAX_CHILDREN]);
    world_close(&w);
    for (size_t i = 0; i < countof(s); i++)
        spawn_close(&s[i]);
}

TEST(test_keeper__failed_fork_is_told_and_the_next_one_works)
{
    struct world w;
    struct spawn s;
    fault_load("keeper.fork:1");
    world_open(&w);
    assert_fails(&w, peer_server("exit", "0"), "cannot fork");
    spawn(&w, &s, peer_server("exit", "0"));
    wait_over(&s);
    assert_int_equal(s.exited, 1);
    spawn_close(&s);
    world_close(&w);
    fault_load("");
}

TEST(test_keeper__stop_waits_for_the_end_of_all)
{
    struct world w;
    struct spawn s;
    int child, grandchild;
    world_open(&w);
    spawn_family(&w, &s, "stubborn", &child, &grandchild);
    int keeper = process_watch(keeper_pid(w.keeper));
    world_close(&w);
    assert_true(process_ended(&keeper, 0));
    assert_true(process_ended(&child, 0));
    assert_true(process_ended(&grandchild, 0));
    assert_int_equal(s.exited, 1);
    spawn_close(&s);
}

TEST(test_keeper__stop_gives_children_a_moment_to_end_by_themselves)
{
    struct world w;
    struct spawn s;
    world_open(&w);
    spawn(&w, &s, peer_server("tidy", NULL));
    wait_started(&s);
    read_until(&s, "{\"ready\":true}\n");
    world_close(&w);
    read_until(&s, "{\"tidied\":true}\n");
    spawn_close(&s);
}
