/* SPDX-License-Identifier: Apache-2.0 */
/* A throw-away PostgreSQL for a test program (tests/support/pg_cluster), started at first use and
 * gone with the process; $HOLDFAST_TEST_DATABASE names one that runs already.  Every test has a
 * database of its own, copied from one that is migrated once. */
#ifndef HOLDFAST_TESTS_PG_CLUSTER_H
#define HOLDFAST_TESTS_PG_CLUSTER_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "test.h"

#include "store/store.h"

#define PG_URL_MAX 512

/* Starts the cluster; what it prints first is its URL, nothing when there is none to start. */
static inline void pg_cluster_start(char ret_url[PG_URL_MAX])
{
    static const char path[] = TEST_SUPPORT_DIR "/pg_cluster";
    int in[2], out[2], status = 0;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execl(path, path, (char *)NULL);
        _exit(77);
    }
    close(in[0]);
    close(out[1]); /* in[1] stays open: the cluster runs until we end */
    size_t n = 0;
    while (n < PG_URL_MAX - 1 && read(out[0], ret_url + n, 1) == 1 && ret_url[n] != '\n')
        n++;
    ret_url[n] = '\0';
    close(out[0]);
    if (n == 0) {
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WEXITSTATUS(status), 77); /* there is no PostgreSQL to start */
    }
}

/* URL of the cluster's own database, or NULL when none can be started. */
static inline const char *pg_cluster_url(void)
{
    static char url[PG_URL_MAX];
    static bool tried;
    if (!tried) {
        const char *given = getenv("HOLDFAST_TEST_DATABASE");
        tried = true;
        if (given)
            snprintf(url, sizeof(url), "%s", given);
        else
            pg_cluster_start(url);
    }
    return url[0] ? url : NULL;
}

static inline void pg_cluster_sql(const char *sql)
{
    PGconn *conn = PQconnectdb(pg_cluster_url());
    PGresult *res = PQexec(conn, sql);
    if (PQresultStatus(res) != PGRES_COMMAND_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(conn));
    PQclear(res);
    PQfinish(conn);
}

/* The cluster's URL with another database in it. */
static inline void pg_database_url(const char *name, char ret[PG_URL_MAX])
{
    const char *url = pg_cluster_url();
    const char *at = strstr(url, "/postgres?");
    assert_non_null(at);
    snprintf(ret, PG_URL_MAX, "%.*s/%s%s", (int)(at - url), url, name, at + strlen("/postgres"));
}

/* Makes the database `name`, with the newest schema in it. */
static inline void pg_database_make(const char *name)
{
    static char template[64];
    char url[PG_URL_MAX], sql[256];
    if (!template[0]) {
        struct error err;
        struct store *s = NULL;
        snprintf(template, sizeof(template), "template_%d", (int)getpid());
        snprintf(sql, sizeof(sql), "CREATE DATABASE %s", template);
        pg_cluster_sql(sql);
        pg_database_url(template, url);
        struct store_config config = {.path = str_of(url)};
        if (!store_open_postgres(&config, &s, &err))
            fail_msg("%s", err.text);
        store_close(s);
    }
    snprintf(sql, sizeof(sql), "CREATE DATABASE %s TEMPLATE %s STRATEGY file_copy", name, template);
    pg_cluster_sql(sql);
}

static inline void pg_database_drop(const char *name)
{
    char sql[256];
    snprintf(sql, sizeof(sql), "DROP DATABASE IF EXISTS %s WITH (FORCE)", name);
    pg_cluster_sql(sql);
}

#endif
