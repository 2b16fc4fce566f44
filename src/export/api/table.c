/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of this folder in the table of REST. */
#include "export/api/impl.h"

static const struct api_param export_params[] = {
    {.name = "id",
     .in = "path",
     .type = "string",
     .is_required = true,
     .min = 1,
     .max = 255,
     .help = "The session's session_id, or its id.",
     .example = "\"session-1\""},
    {.name = "format",
     .in = "query",
     .type = "string",
     .default_text = "jsonl",
     .names = export_format_names,
     .help = "jsonl: signed lines for programs, and for an import. md: a transcript for people. "
             "csv: one row per call."},
    {.name = "tenant",
     .in = "query",
     .type = "string",
     .min = 1,
     .max = 64,
     .help = "The caller's tenant. On the unix socket: any tenant (default: `default`)."},
    {0},
};

static const char *const export_types[] = {"application/x-ndjson", "text/markdown; charset=utf-8",
                                           "text/csv; charset=utf-8", NULL};
static const struct api_answer export_answers[] = {
    {200, NULL, "The session and its recorded calls, oldest first, as a stream.", export_types},
    {0},
};

static const struct api_operation operations[] = {
    {.method = "GET",
     .pattern = "/api/v1/sessions/{id}/export",
     .id = "exportSession",
     .access = API_READ,
     .is_sessions = true,
     .run = api_export_session,
     .summary = "Exports a session with its recorded calls.",
     .params = export_params,
     .answers = export_answers},
    {0},
};

static const struct api_schema schemas[] = {{0}};
static const struct api_example examples[] = {{0}};

const struct api_part exports_api = {
    .operations = operations,
    .after = "listExecutions",
    .schemas = schemas,
    .after_schema = "Context",
    .examples = examples,
};
