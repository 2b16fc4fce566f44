/* SPDX-License-Identifier: Apache-2.0 */
/* The pager is a child that reads our stdout from a pipe. */
#include "cli/table.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGER_ARGS 16

extern char **environ;

static pid_t pager; /* 0: none */

/* $PAGER split at blanks. */
static size_t split(char *words, char *argv[PAGER_ARGS + 1])
{
    size_t n = 0;
    char *rest;

    for (char *word = strtok_r(words, " ", &rest); word && n < PAGER_ARGS;
         word = strtok_r(NULL, " ", &rest))
        argv[n++] = word;
    argv[n] = NULL;
    return n;
}

void pager_begin(void)
{
    const char *wanted = getenv("PAGER");
    char words[1024], *argv[PAGER_ARGS + 1];
    posix_spawn_file_actions_t actions;
    int fds[2];

    snprintf(words, sizeof(words), "%s", wanted ? wanted : "less -FRX");
    if (!isatty(STDOUT_FILENO) || !split(words, argv) || pipe2(fds, O_CLOEXEC) != 0)
        return;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[0], STDIN_FILENO);
    fflush(stdout);
    if (posix_spawnp(&pager, argv[0], &actions, NULL, argv, environ) == 0) {
        dup2(fds[1], STDOUT_FILENO);
        signal(SIGPIPE, SIG_IGN); /* a pager that was left early is no error */
        signal(SIGINT, SIG_IGN);  /* the pager handles Ctrl-C */
    } else {
        pager = 0;
    }
    posix_spawn_file_actions_destroy(&actions);
    close(fds[0]);
    close(fds[1]);
}

void pager_end(void)
{
    int status;

    if (!pager)
        return;
    fflush(stdout);
    close(STDOUT_FILENO);
    while (waitpid(pager, &status, 0) < 0 && errno == EINTR)
        ;
    pager = 0;
}
