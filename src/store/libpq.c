/* SPDX-License-Identifier: Apache-2.0 */
/* Loads libpq by its soname and never unloads it. */
#include "store/libpq.h"

#include "base/base.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#define LIBRARY "libpq.so.5"

struct libpq pq;

static const struct function {
    const char *name;
    size_t at; /* offset in struct libpq */
} functions[] = {
    {"PQclear", offsetof(struct libpq, clear)},
    {"PQcmdTuples", offsetof(struct libpq, cmd_tuples)},
    {"PQconnectPoll", offsetof(struct libpq, connect_poll)},
    {"PQconnectStartParams", offsetof(struct libpq, connect_start_params)},
    {"PQconninfoFree", offsetof(struct libpq, conninfo_free)},
    {"PQconninfoParse", offsetof(struct libpq, conninfo_parse)},
    {"PQconsumeInput", offsetof(struct libpq, consume_input)},
    {"PQenterPipelineMode", offsetof(struct libpq, enter_pipeline_mode)},
    {"PQerrorMessage", offsetof(struct libpq, error_message)},
    {"PQexitPipelineMode", offsetof(struct libpq, exit_pipeline_mode)},
    {"PQfinish", offsetof(struct libpq, finish)},
    {"PQflush", offsetof(struct libpq, flush)},
    {"PQgetResult", offsetof(struct libpq, get_result)},
    {"PQgetisnull", offsetof(struct libpq, getisnull)},
    {"PQgetlength", offsetof(struct libpq, getlength)},
    {"PQgetvalue", offsetof(struct libpq, getvalue)},
    {"PQhost", offsetof(struct libpq, host)},
    {"PQisBusy", offsetof(struct libpq, is_busy)},
    {"PQntuples", offsetof(struct libpq, ntuples)},
    {"PQpipelineSync", offsetof(struct libpq, pipeline_sync)},
    {"PQresultErrorField", offsetof(struct libpq, result_error_field)},
    {"PQresultErrorMessage", offsetof(struct libpq, result_error_message)},
    {"PQresultStatus", offsetof(struct libpq, result_status)},
    {"PQsendPrepare", offsetof(struct libpq, send_prepare)},
    {"PQsendQuery", offsetof(struct libpq, send_query)},
    {"PQsendQueryPrepared", offsetof(struct libpq, send_query_prepared)},
    {"PQserverVersion", offsetof(struct libpq, server_version)},
    {"PQsetnonblocking", offsetof(struct libpq, setnonblocking)},
    {"PQsocket", offsetof(struct libpq, socket)},
    {"PQsslInUse", offsetof(struct libpq, ssl_in_use)},
    {"PQstatus", offsetof(struct libpq, status)},
    {"PQtransactionStatus", offsetof(struct libpq, transaction_status)},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_loaded;

static bool find_all(void *library, struct error *err)
{
    for (size_t i = 0; i < countof(functions); i++) {
        void *found = dlsym(library, functions[i].name);
        if (!found)
            return error_set(err, ERR_CONFIG,
                             LIBRARY
                             " has no %s, it is too old; install libpq of PostgreSQL 14 or newer",
                             functions[i].name);
        memcpy((char *)&pq + functions[i].at, &found, sizeof(found));
    }
    return true;
}

static bool load(struct error *err)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (!library)
        return error_set(err, ERR_CONFIG,
                         "PostgreSQL needs " LIBRARY
                         ", which cannot be loaded (%s); install it, on "
                         "Debian with: apt install libpq5",
                         dlerror());
    return find_all(library, err);
}

bool libpq_load(struct error *err)
{
    pthread_mutex_lock(&lock);
    if (!is_loaded)
        is_loaded = load(err);
    bool ok = is_loaded;
    pthread_mutex_unlock(&lock);
    return ok;
}
