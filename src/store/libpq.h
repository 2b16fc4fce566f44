/* SPDX-License-Identifier: Apache-2.0 */
/* libpq, loaded only when a PostgreSQL store is opened.  It depends on some twenty libraries (LDAP,
 * Kerberos, GnuTLS), which a gateway on SQLite would load and hold in memory without using them.
 *
 * The functions have libpq's names without the PQ.  libpq_load() fills `pq` once, before the first
 * PostgreSQL store is opened; after that `pq` is only read. */
#ifndef HOLDFAST_STORE_LIBPQ_H
#define HOLDFAST_STORE_LIBPQ_H

#include <libpq-fe.h>

#include "base/error.h"

struct libpq {
    __typeof__(PQclear) *clear;
    __typeof__(PQcmdTuples) *cmd_tuples;
    __typeof__(PQconnectPoll) *connect_poll;
    __typeof__(PQconnectStartParams) *connect_start_params;
    __typeof__(PQconninfoFree) *conninfo_free;
    __typeof__(PQconninfoParse) *conninfo_parse;
    __typeof__(PQconsumeInput) *consume_input;
    __typeof__(PQenterPipelineMode) *enter_pipeline_mode;
    __typeof__(PQerrorMessage) *error_message;
    __typeof__(PQexitPipelineMode) *exit_pipeline_mode;
    __typeof__(PQfinish) *finish;
    __typeof__(PQflush) *flush;
    __typeof__(PQgetResult) *get_result;
    __typeof__(PQgetisnull) *getisnull;
    __typeof__(PQgetlength) *getlength;
    __typeof__(PQgetvalue) *getvalue;
    __typeof__(PQhost) *host;
    __typeof__(PQisBusy) *is_busy;
    __typeof__(PQntuples) *ntuples;
    __typeof__(PQpipelineSync) *pipeline_sync;
    __typeof__(PQresultErrorField) *result_error_field;
    __typeof__(PQresultErrorMessage) *result_error_message;
    __typeof__(PQresultStatus) *result_status;
    __typeof__(PQsendPrepare) *send_prepare;
    __typeof__(PQsendQuery) *send_query;
    __typeof__(PQsendQueryPrepared) *send_query_prepared;
    __typeof__(PQserverVersion) *server_version;
    __typeof__(PQsetnonblocking) *setnonblocking;
    __typeof__(PQsocket) *socket;
    __typeof__(PQsslInUse) *ssl_in_use;
    __typeof__(PQstatus) *status;
    __typeof__(PQtransactionStatus) *transaction_status;
};
extern struct libpq pq;

/* Thread-safe.  Returns quickly after the first success. */
must_check bool libpq_load(struct error *err);

#endif
