/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of this folder in the table of REST. */
#include "export/api/impl.h"
#include "export/api/upload.h"

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

static const char *const flags[] = {"0", "1", NULL};
static const struct api_param import_params[] = {
    {.name = "key",
     .in = "query",
     .type = "string",
     .min = 64,
     .max = 64,
     .help = "Public key that must have signed the file, in hex digits; absent: any key."},
    {.name = "again",
     .in = "query",
     .type = "string",
     .names = flags,
     .default_text = "0",
     .help = "1: makes a further session if the caller has imported this file before."},
    {.name = "as_recorded",
     .in = "query",
     .type = "string",
     .names = flags,
     .default_text = "0",
     .help = "1, for administrators: bodies of a complete record keep the secrets in them."},
    {.name = "line",
     .in = "query",
     .type = "integer",
     .min = 1,
     .max = INT32_MAX,
     .default_text = "1",
     .help = "Number of the first line in its file; refusals name lines by it."},
    {.name = "upload",
     .in = "query",
     .type = "string",
     .min = 1,
     .max = 64,
     .help = "Name of an upload, of the caller's choice: the body is a piece of the file. For "
             "files that are longer than a request may be."},
    {.name = "at",
     .in = "query",
     .type = "integer",
     .min = 0,
     .max = UPLOAD_BYTES_MAX,
     .default_text = "0",
     .help = "Offset of the piece. The pieces come one after the other, to one node; 0 begins "
             "anew."},
    {.name = "last",
     .in = "query",
     .type = "string",
     .names = flags,
     .default_text = "0",
     .help = "1: the file ends with this piece, and is imported."},
    {.name = "tenant",
     .in = "query",
     .type = "string",
     .min = 1,
     .max = 64,
     .help = "The caller's tenant. On the unix socket: any tenant (default: `default`)."},
    {0},
};
static const struct api_answer import_answers[] = {
    {200, "Import", "The caller has imported this file before; the session of that time.", NULL},
    {201, "Import", "The session was imported.", NULL},
    {202, NULL, "The piece is stored.", NULL},
    {409, "Problem", "Another request is importing this file, or the piece begins elsewhere.",
     NULL},
    {413, "Problem", "The body is larger than a request may be, or the file than 1 GiB.", NULL},
    {415, "Problem", "The body is not of that type.", NULL},
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
    {.method = "POST",
     .pattern = "/api/v1/sessions/import",
     .id = "importSession",
     .access = API_WRITE,
     .is_sessions = true,
     .takes = "application/x-ndjson",
     .run = api_import_session,
     .summary = "Imports an exported session of another Holdfast.",
     .params = import_params,
     .answers = import_answers},
    {0},
};

static const char *const statuses[] = {"active", "idle", "expired", "terminated", NULL};
static const char *const signers[] = {"named", "this", "unknown", NULL};
static const struct api_member import_members[] = {
    {"id", "string", NULL, true, NULL, NULL, "Row id of the session here."},
    {"session_id", "string", NULL, true, NULL, NULL, "Its session_id here."},
    {"status", "string", NULL, true, NULL, statuses, "Its status."},
    {"is_new", "boolean", NULL, true, NULL, NULL, "false: it was imported before."},
    {"calls", "integer", NULL, true, NULL, NULL, "Calls in the file."},
    {"from_session", "string", NULL, true, NULL, NULL, "Its session_id at its origin."},
    {"key", "string", NULL, true, NULL, NULL, "Public key that signed the file, in hex digits."},
    {"signer", "string", NULL, true, NULL, signers,
     "Whose key that is: `named` in the request, of `this` Holdfast, or `unknown`."},
    {0},
};
static const struct api_schema schemas[] = {
    {"Import", import_members, "An imported session.", 0},
    {0},
};
static const struct api_example examples[] = {
    {"from_session", "\"ses_Heefe51k\""},
    {"signer", "\"unknown\""},
    {0},
};

const struct api_part exports_api = {
    .operations = operations,
    .after = "listExecutions",
    .schemas = schemas,
    .after_schema = "Context",
    .examples = examples,
};
