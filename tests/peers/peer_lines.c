/* SPDX-License-Identifier: Apache-2.0 */
/* A stdio child that misbehaves on request: peer_lines MODE [ARG].  Knows no MCP; what it prints
 * that starts with '{' or '[' passes for a message.  Modes are the table at the end.  Unless said
 * otherwise a mode goes on as `echo`: every line of stdin comes back on stdout, EOF ends it. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void echo(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    while ((n = getline(&line, &cap, stdin)) > 0) {
        fwrite(line, 1, (size_t)n, stdout);
        fflush(stdout);
    }
    free(line);
}

static void say(const char *text)
{
    puts(text);
    fflush(stdout);
}

static void mode_echo(const char *arg)
{
    (void)arg;
    echo();
}

static void say_string(const char *kind, const char *value)
{
    printf("[\"%s\",\"", kind);
    for (; *value; value++)
        printf(*value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
    puts("\"]");
}

/* What of the process was inherited: ["env","NAME=VALUE"], ["fd","0"], ["status","SigBlk:…"] … */
static void mode_inherited(const char *arg)
{
    char line[512], cwd[4096];
    struct rlimit core;
    (void)arg;
    for (char **e = environ; *e; e++)
        say_string("env", *e);
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir))
        if (d->d_name[0] != '.' && atoi(d->d_name) != dirfd(dir))
            say_string("fd", d->d_name);
    closedir(dir);
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        for (char *tab = strchr(line, '\t'); tab; tab = strchr(tab, '\t'))
            memmove(tab, tab + 1, strlen(tab));
        if (!strncmp(line, "Sig", 3) || !strncmp(line, "NoNewPrivs", 10))
            say_string("status", line);
    }
    fclose(f);
    getrlimit(RLIMIT_CORE, &core);
    printf("[\"core\",%ld,%ld]\n", (long)core.rlim_cur, (long)core.rlim_max);
    printf("[\"session\",%s]\n", getsid(0) == getpid() && getpgrp() == getpid() ? "true" : "false");
    if (getcwd(cwd, sizeof(cwd)))
        say_string("cwd", cwd);
    say("{\"done\":true}");
    echo();
}

/* Ignores SIGTERM and EOF, and has a grandchild in a session of its own that does so too. */
static void mode_stubborn(const char *arg)
{
    (void)arg;
    signal(SIGTERM, SIG_IGN);
    pid_t grandchild = fork();
    if (grandchild == 0) {
        setsid();
        for (;;)
            pause();
    }
    printf("{\"grandchild\":%d}\n", (int)grandchild);
    fflush(stdout);
    for (;;)
        pause();
}

static void on_term(int signum)
{
    static const char text[] = "{\"tidied\":true}\n";
    (void)signum;
    _exit(write(1, text, sizeof(text) - 1) < 0);
}

/* Has something to do at SIGTERM, and ignores EOF. */
static void mode_tidy(const char *arg)
{
    (void)arg;
    signal(SIGTERM, on_term);
    say("{\"ready\":true}");
    for (;;)
        pause();
}

/* Leaves a daemon behind: two forks and setsid(), pipes let go. */
static void mode_daemon(const char *arg)
{
    int ids[2];
    pid_t daemon = 0;
    (void)arg;
    if (pipe(ids))
        exit(1);
    pid_t between = fork();
    if (between == 0) {
        setsid();
        daemon = fork();
        if (daemon == 0) {
            int null = open("/dev/null", O_RDWR);
            for (int fd = 0; fd < 3; fd++)
                dup2(null, fd);
            close(ids[0]);
            close(ids[1]);
            for (;;)
                pause();
        }
        _exit(write(ids[1], &daemon, sizeof(daemon)) < 0);
    }
    waitpid(between, NULL, 0);
    if (read(ids[0], &daemon, sizeof(daemon)) != (ssize_t)sizeof(daemon))
        exit(1);
    printf("{\"grandchild\":%d}\n", (int)daemon);
    fflush(stdout);
    echo();
}

static void fill(int fd, size_t n, const char *text)
{
    char chunk[65536];
    size_t len = strlen(text);
    for (size_t i = 0; i < sizeof(chunk); i++)
        chunk[i] = text[i % len];
    while (n) {
        size_t now = n < sizeof(chunk) ? n : sizeof(chunk) / len * len;
        ssize_t done = write(fd, chunk, now);
        if (done <= 0)
            exit(1);
        n -= (size_t)done;
    }
}

/* stderr N: N bytes of stderr in short lines, and only then an answer. */
static void mode_stderr(const char *arg)
{
    fill(2, strtoul(arg, NULL, 10), "one line of thirty-two characters\n");
    say("{\"ready\":true}");
    echo();
}

/* The same without a single newline. */
static void mode_stderr_endless(const char *arg)
{
    fill(2, strtoul(arg, NULL, 10), "x");
    say("{\"ready\":true}");
    echo();
}

static void long_line(size_t n, const char *end)
{
    putchar('{');
    for (size_t i = 1; i < n; i++)
        putchar('x');
    say(end);
}

/* long N: one line of N bytes before its newline. */
static void mode_long(const char *arg)
{
    long_line(strtoul(arg, NULL, 10), "");
    echo();
}

static void mode_long_crlf(const char *arg)
{
    long_line(strtoul(arg, NULL, 10), "\r");
    echo();
}

/* garbage N: N lines that are no JSON, blank ones between them, then a message. */
static void mode_garbage(const char *arg)
{
    for (unsigned long n = strtoul(arg, NULL, 10); n; n--)
        puts("Server listening, have a nice day\n\n  \r");
    say("{\"ready\":true}");
    echo();
}

/* binary N: N bytes of everything but newlines, then a message on its own line. */
static void mode_binary(const char *arg)
{
    unsigned long n = strtoul(arg, NULL, 10);
    for (unsigned long i = 0; i < n; i++)
        putchar(i % 256 == '\n' ? 0 : (int)(i % 256));
    say("\n{\"ready\":true}");
    echo();
}

static void mode_exit(const char *arg)
{
    fprintf(stderr, "first words\ncannot go on: \x1b[31mno license\x1b[0m\n\n");
    exit(atoi(arg));
}

/* Ends by a signal, at once. */
static void mode_crash(const char *arg)
{
    (void)arg;
    signal(SIGABRT, SIG_DFL);
    abort();
}

/* A last message and a torn one, then gone. */
static void mode_last_words(const char *arg)
{
    (void)arg;
    printf("{\"last\":true}\n{\"torn\":");
    fflush(stdout);
    _exit(0);
}

static void mode_deaf(const char *arg)
{
    (void)arg;
    say("{\"ready\":true}");
    for (;;)
        pause();
}

static void mode_close_stdin(const char *arg)
{
    (void)arg;
    close(0);
    mode_deaf("");
}

static void mode_close_stdout(const char *arg)
{
    (void)arg;
    say("{\"ready\":true}");
    close(1);
    for (;;)
        pause();
}

static void mode_stop(const char *arg)
{
    (void)arg;
    say("{\"ready\":true}");
    raise(SIGSTOP);
    echo();
}

static const struct {
    const char *name;
    void (*run)(const char *arg);
} modes[] = {
    {"echo", mode_echo},
    {"inherited", mode_inherited},
    {"stubborn", mode_stubborn},
    {"tidy", mode_tidy},
    {"daemon", mode_daemon},
    {"stderr", mode_stderr},
    {"stderr-endless", mode_stderr_endless},
    {"long", mode_long},
    {"long-crlf", mode_long_crlf},
    {"garbage", mode_garbage},
    {"binary", mode_binary},
    {"exit", mode_exit},
    {"crash", mode_crash},
    {"last-words", mode_last_words},
    {"deaf", mode_deaf},               /* never reads stdin */
    {"close-stdin", mode_close_stdin}, /* lives on without it */
    {"close-stdout", mode_close_stdout},
    {"stop", mode_stop}, /* SIGSTOPs itself after a first message */
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strcmp(modes[i].name, argv[1]) == 0) {
            modes[i].run(argc > 2 ? argv[2] : "0");
            return 0;
        }
    }
    fprintf(stderr, "usage: peer_lines MODE [ARG]; the modes are in its source\n");
    return 2;
}
