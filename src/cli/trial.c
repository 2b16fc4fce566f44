/* SPDX-License-Identifier: Apache-2.0 */
/* The Holdfast of a trial is a child process.  It gets the configuration in its memory, dies with
 * this process, and is asked over its control socket. */
#include "cli/trial.h"

#include "base/clock.h"
#include "cli/control.h"
#include "cli/scratch.h"
#include "cli/source.h"
#include "gateway.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIAL_MS 120000
#define END_MS 15000 /* for the child to end in order */
#define PAUSE_MS 30
#define SLOW_MS 1500 /* after this time the user is told what Holdfast waits for */

struct trial_place {
    trial_make_fn *make;
    void *arg;
    char dir[SCRATCH_TEXT];
    pid_t gateway;
    int64_t began_ms;
    bool is_slow; /* the user was told */
};

/* Each ends the trial in order, so that no process and no directory is left behind. */
static const int end_signals[] = {SIGINT, SIGTERM, SIGHUP};
static volatile sig_atomic_t interrupted; /* the signal; 0: none */

static void on_interrupt(int signal)
{
    interrupted = signal;
}

/* In the child process. */
static int serve(struct trial_place *p, struct arena *mem)
{
    struct gateway_options options = {.data_dir = str_of(p->dir), .only_control_socket = true};
    struct error err;

    options.config = p->make(p->arg, mem);
    if (!options.config)
        return 1;
    if (!database_choose(STR_NONE, options.data_dir, mem, &options.database, &err))
        return error_info(err.code)->exit_status;
    return gateway_run(&options);
}

static void become_gateway(struct trial_place *p, struct arena *mem, pid_t parent)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (size_t i = 0; i < countof(end_signals); i++)
        signal(end_signals[i], SIG_DFL);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(nothing, STDOUT_FILENO) < 0 || dup2(nothing, STDERR_FILENO) < 0)
        _exit(1);
    exit(serve(p, mem));
}

static bool start(struct trial_place *p, struct arena *mem, struct error *err)
{
    pid_t self = getpid();

    if (!scratch_make("trial", mem, p->dir, err))
        return false;
    p->began_ms = clock_mono_ms();
    p->gateway = fork();
    if (p->gateway == 0)
        become_gateway(p, mem, self);
    return p->gateway > 0 || error_sys(err, ERR_INTERNAL, errno, "cannot start a process");
}

static void end(struct trial_place *p)
{
    int64_t until = clock_mono_ms() + END_MS;

    if (p->gateway > 0) {
        kill(p->gateway, SIGTERM);
        while (waitpid(p->gateway, NULL, WNOHANG) == 0 && clock_mono_ms() < until)
            (void)poll(NULL, 0, PAUSE_MS);
        if (clock_mono_ms() >= until) {
            kill(p->gateway, SIGKILL);
            waitpid(p->gateway, NULL, 0);
        }
    }
    scratch_remove(p->dir);
}

/* Waits a little; false when the user interrupted, or the time is over. */
static bool pause_more(struct trial_place *p, struct cli *cli, struct str name, struct error *err)
{
    int64_t waited = clock_mono_ms() - p->began_ms;

    if (interrupted)
        return error_set(err, ERR_CANCELLED, "interrupted; nothing was changed");
    if (waited > TRIAL_MS)
        return error_set(err, ERR_UNREACHABLE,
                         "the server did not answer within %d seconds; start it by hand to see "
                         "why, or add it without a trial (--no-check)",
                         TRIAL_MS / 1000);
    if (waited > SLOW_MS && !p->is_slow && isatty(STDERR_FILENO) && !cli_flag(cli, "--json")) {
        fprintf(stderr, "waiting for %.*s (a first start may download the server)\n",
                STR_ARG(name));
        p->is_slow = true;
    }
    (void)poll(NULL, 0, PAUSE_MS);
    return true;
}

static int64_t number(const struct js_doc *doc, const char *name)
{
    int64_t n = 0;

    return js_to_i64(doc, js_get(doc, js_root(doc), str_of(name)), &n) ? n : 0;
}

/* Whether the probe has ended; with *err set when the server failed. */
static bool read_state(struct str json, struct arena *mem, struct trial *ret, bool *ret_ok,
                       struct error *err)
{
    struct js_doc doc;

    if (!source_parse(json, mem, &doc, err)) {
        *ret_ok = false;
        return true;
    }
    const struct js_node *root = js_root(&doc);
    struct str state = source_text(&doc, root, "state", mem),
               reason = source_text(&doc, root, "reason", mem),
               last_error = source_text(&doc, root, "last_error", mem);
    *ret_ok = js_get(&doc, root, STR("era")) != NULL;
    if (*ret_ok) {
        *ret = (struct trial){.tools = number(&doc, "tools"),
                              .prompts = number(&doc, "prompts"),
                              .resources = number(&doc, "resources"),
                              .version = source_text(&doc, root, "protocol_version", mem),
                              .took_ms = number(&doc, "probe_ms")};
        return true;
    }
    if (!last_error.n && !str_eq(state, STR("down")))
        return false;
    return error_set(err, ERR_UNREACHABLE, "%.*s", STR_ARG(last_error.n ? last_error : reason)),
           true;
}

/* Asks once.  Whether the trial of this server has ended. */
static bool ask_once(struct trial_place *p, struct control **control, struct str name,
                     struct arena *mem, struct trial *ret, bool *ret_ok, struct error *err)
{
    struct str path = arena_printf(mem, "/api/v1/servers/%.*s", STR_ARG(source_encoded(name, mem))),
               json;

    if (!*control && !control_open_socket(str_of(p->dir), control, err))
        *control = NULL;
    return *control && control_get(*control, path, mem, &json, err) &&
           read_state(json, mem, ret, ret_ok, err);
}

static bool is_alive(struct trial_place *p, struct error *err)
{
    if (waitpid(p->gateway, NULL, WNOHANG) != p->gateway)
        return true;
    p->gateway = 0;
    return error_set(err, ERR_INTERNAL, "the Holdfast of the trial ended; look at `holdfast up`");
}

static bool ask(struct trial_place *p, struct cli *cli, struct str name, struct trial *ret,
                struct error *err)
{
    struct control *control = NULL;
    bool ok = false, ended = false;

    while (!ended && is_alive(p, err)) {
        ended = ask_once(p, &control, name, cli->mem, ret, &ok, err);
        if (!ended && !pause_more(p, cli, name, err))
            break;
    }
    if (control)
        control_close(control);
    return ok;
}

/* The actions of end_signals before the trial. */
struct actions {
    struct sigaction before[countof(end_signals)];
};

/* A signal that the command ignores, as under nohup, stays ignored. */
static bool begin(struct trial_place *p, struct cli *cli, struct actions *ret, struct error *err)
{
    struct sigaction act = {.sa_handler = on_interrupt};

    interrupted = 0;
    for (size_t i = 0; i < countof(end_signals); i++) {
        sigaction(end_signals[i], NULL, &ret->before[i]);
        if (ret->before[i].sa_handler != SIG_IGN)
            sigaction(end_signals[i], &act, NULL);
    }
    return start(p, cli->mem, err);
}

static void finish(struct trial_place *p, const struct actions *a)
{
    end(p);
    for (size_t i = 0; i < countof(end_signals); i++)
        sigaction(end_signals[i], &a->before[i], NULL);
    /* The command says by itself that Ctrl-C interrupted it. */
    if (interrupted && interrupted != SIGINT)
        raise(interrupted);
}

static struct config *parse(void *arg, struct arena *mem unused_arg)
{
    const struct str *json = arg;
    struct config *config;
    struct error err;

    return config_parse(*json, STR_NONE, &(struct config_source){0}, &config, &err) ? config : NULL;
}

bool trial_run(struct cli *cli, struct str name, struct str config_json, struct trial *ret,
               struct error *err)
{
    struct trial_place p = {.make = parse, .arg = &config_json};
    struct actions before;
    bool ok = begin(&p, cli, &before, err) && ask(&p, cli, name, ret, err);

    finish(&p, &before);
    return ok;
}

/* Several servers. */

/* Asks for each that has not ended.  Returns how many are left. */
static size_t ask_rest(struct trial_place *p, struct control **control, struct arena *mem,
                       struct trial_server *list, size_t n)
{
    struct error err;
    size_t left = 0;

    for (size_t i = 0; i < n; i++) {
        if (list[i].ok || list[i].why.p)
            continue;
        if (!ask_once(p, control, list[i].name, mem, &list[i].found, &list[i].ok, &err))
            left++;
        else if (!list[i].ok)
            list[i].why = arena_dup(mem, str_of(err.text));
    }
    return left;
}

bool trial_run_servers(struct cli *cli, trial_make_fn *make, void *arg, int64_t timeout_ms,
                       struct trial_server *list, size_t n, struct error *err)
{
    struct trial_place p = {.make = make, .arg = arg};
    struct control *control = NULL;
    struct actions before;
    bool ok = begin(&p, cli, &before, err);

    while (ok && (ok = is_alive(&p, err)) && ask_rest(&p, &control, cli->mem, list, n) &&
           clock_mono_ms() - p.began_ms < timeout_ms) {
        if (interrupted)
            ok = error_set(err, ERR_CANCELLED, "interrupted");
        (void)poll(NULL, 0, PAUSE_MS);
    }
    for (size_t i = 0; i < n; i++)
        if (!list[i].ok && !list[i].why.p)
            list[i].why = arena_printf(cli->mem, "it did not answer within %lld s",
                                       (long long)timeout_ms / 1000);
    if (control)
        control_close(control);
    finish(&p, &before);
    return ok;
}
