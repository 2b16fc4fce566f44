/* SPDX-License-Identifier: Apache-2.0 */
/* The operations on documents: a part of the table of REST (api/api.h). */
#include "docs/api/table.h"

#include "docs/api/bodies.h"
#include "docs/api/request.h"

/* Parameters. */

#define PARAM_FOLDER                                                                               \
    {                                                                                              \
        .name = "folder", .in = "path", .type = "string", .is_required = true, .min = 1,           \
        .help = "Name of a configured folder.", .example = "\"Lens\""                              \
    }
#define PARAM_PATH                                                                                 \
    {                                                                                              \
        .name = "path", .in = "path", .type = "string", .is_required = true, .min = 1,             \
        .help = "Path of the document inside its folder, percent-encoded except for slashes.",     \
        .example = "\"notes/plan.md\"", .has_slashes = true                                        \
    }
#define PARAM_ONE_FOLDER                                                                           \
    {                                                                                              \
        .name = "folder", .in = "query", .type = "string", .min = 1,                               \
        .help = "Only this folder (default: all folders that the caller may use)."                 \
    }
#define PARAM_LIMIT                                                                                \
    {                                                                                              \
        .name = "limit", .in = "query", .type = "integer", .min = 1, .max = STORE_PAGE_MAX,        \
        .default_text = "50", .help = "Largest number of rows in the page."                        \
    }
#define PARAM_CURSOR                                                                               \
    {                                                                                              \
        .name = "cursor", .in = "query", .type = "string", .min = 1, .max = 2000,                  \
        .help = "next_cursor of the previous page."                                                \
    }
#define PARAM_IF_NONE_MATCH(HELP)                                                                  \
    {                                                                                              \
        .name = "If-None-Match", .in = "header", .type = "string", .help = (HELP)                  \
    }

static const struct api_param no_params[] = {{0}};
static const struct api_param docs_list_params[] = {
    PARAM_ONE_FOLDER, PARAM_LIMIT, PARAM_CURSOR, {0}};
static const struct api_param docs_get_params[] = {
    PARAM_FOLDER,
    PARAM_PATH,
    {.name = "accepted",
     .in = "query",
     .type = "boolean",
     .default_text = "false",
     .help = "Whether to include the text with all suggestions accepted."},
    PARAM_IF_NONE_MATCH(
        "An ETag from an earlier answer. The answer is 304 if the document still has it."),
    {0},
};
static const struct api_param docs_put_params[] = {
    PARAM_FOLDER,
    PARAM_PATH,
    {.name = "If-Match",
     .in = "header",
     .type = "string",
     .help = "The ETag of the document that was read, or * for any existing one. Either this or "
             "If-None-Match is required."},
    PARAM_IF_NONE_MATCH("* creates a new document."),
    {0},
};
static const struct api_param docs_history_params[] = {
    PARAM_FOLDER, PARAM_PATH, PARAM_LIMIT, PARAM_CURSOR, {0}};
static const struct api_param docs_revision_params[] = {
    PARAM_FOLDER,
    PARAM_PATH,
    {.name = "revision",
     .in = "path",
     .type = "integer",
     .is_required = true,
     .min = 1,
     .help = "Number of the revision in the history.",
     .example = "3"},
    {0},
};
static const struct api_param docs_restore_params[] = {
    PARAM_FOLDER,
    PARAM_PATH,
    {.name = "If-Match",
     .in = "header",
     .type = "string",
     .help = "Restore only if the document has this ETag (default: always)."},
    {0},
};
static const struct api_param docs_move_params[] = {PARAM_FOLDER, PARAM_PATH, {0}};
static const struct api_param docs_suggestions_params[] = {
    PARAM_ONE_FOLDER,
    {.name = "path",
     .in = "query",
     .type = "string",
     .min = 1,
     .help = "Only this document of the folder, or those below this path; 404 if there are none."},
    PARAM_LIMIT,
    PARAM_CURSOR,
    {0},
};

/* Answers. */

#define UNCHANGED                                                                                  \
    {                                                                                              \
        304, NULL, "The document still has the ETag of If-None-Match."                             \
    }
#define BUSY                                                                                       \
    {                                                                                              \
        409, "Problem", "Another program saves the document repeatedly."                           \
    }
#define STALE                                                                                      \
    {                                                                                              \
        412, "Problem",                                                                            \
            "The document does not have the ETag of the condition; the header ETag is the "        \
            "current one."                                                                         \
    }
#define TOO_LARGE                                                                                  \
    {                                                                                              \
        413, "Problem", "The body or the document is too large."                                   \
    }
#define BAD_TYPE                                                                                   \
    {                                                                                              \
        415, "Problem", "The body is not JSON."                                                    \
    }

static const struct api_answer docs_list_answers[] = {
    {200, "DocumentList", "A page, ordered by folder and path."}, {0}};
static const struct api_answer docs_get_answers[] = {
    {200, "Document", "The document."}, UNCHANGED, {0}};
static const struct api_answer docs_put_answers[] = {
    {200, "DocumentState", "The document was written."},
    {201, "DocumentState", "The document was created; Location is its path."},
    BUSY,
    STALE,
    TOO_LARGE,
    BAD_TYPE,
    {428, "Problem", "Neither If-Match nor If-None-Match: * was sent."},
    {0},
};
static const struct api_answer docs_history_answers[] = {
    {200, "RevisionList", "A page, newest first."}, {0}};
static const struct api_answer docs_revision_answers[] = {
    {200, "Revision", "The revision with its text."}, {0}};
static const struct api_answer docs_restore_answers[] = {
    {200, "DocumentState", "The document was restored."}, BUSY, STALE, TOO_LARGE, BAD_TYPE, {0}};
static const struct api_answer docs_move_answers[] = {
    {200, "DocumentMoved", "The document was moved."},
    {409, "Problem", "The new path exists."},
    TOO_LARGE,
    BAD_TYPE,
    {0}};
static const struct api_answer docs_suggestions_answers[] = {
    {200, "SuggestionList",
     "A page, ordered by folder and path. It may be short or empty even if more follow: go on "
     "while there is a next_cursor."},
    {0}};
static const struct api_answer docs_apply_answers[] = {
    {200, "SuggestionsApplied", "The result for each suggestion."}, BUSY, TOO_LARGE, BAD_TYPE, {0}};

/* Members. */

static const char *const types[] = {"addition", "deletion",  "substitution",
                                    "comment",  "highlight", NULL};
static const char *const kinds[] = {"outside", "create", "suggest", "comment",   "accept", "reject",
                                    "write",   "move",   "restore", "recovered", NULL};

#define MEMBER_PATH                                                                                \
    {                                                                                              \
        "path", "string", NULL, true, NULL, NULL, "Path, as Folder/Path.md."                       \
    }
#define MEMBER_ETAG                                                                                \
    {                                                                                              \
        "etag", "string", NULL, true, NULL, NULL, "ETag of the document, as in the header."        \
    }
#define MEMBER_SIZE                                                                                \
    {                                                                                              \
        "size", "integer", NULL, true, NULL, NULL, "Size of the text in bytes."                    \
    }
#define MEMBERS_PAGE                                                                               \
    {"count", "integer", NULL, true, NULL, NULL, "Number of rows in this answer."},                \
    {                                                                                              \
        "next_cursor", "string|null", NULL, true, NULL, NULL,                                      \
            "Cursor of the next page; null if this is the last page."                              \
    }

static const struct api_member docs_entry_members[] = {
    MEMBER_PATH,
    MEMBER_SIZE,
    {"modified_at", "string", NULL, true, "date-time", NULL, "Time of the last write to the file."},
    {0},
};
static const struct api_member docs_list_members[] = {
    {"files", "array", "DocumentEntry", true, NULL, NULL,
     "The documents, ordered by folder and path."},
    MEMBERS_PAGE,
    {0},
};
static const struct api_member docs_document_members[] = {
    MEMBER_PATH,
    {"revision", "integer", NULL, true, NULL, NULL, "Number of the revision in the history."},
    MEMBER_ETAG,
    MEMBER_SIZE,
    {"modified_at", "string", NULL, true, "date-time", NULL, "Time of the last write to the file."},
    {"content", "string", NULL, true, NULL, NULL, "Text of the document, with its markup."},
    {"accepted", "string", NULL, false, NULL, NULL, "Text with all suggestions accepted."},
    {0},
};
static const struct api_member docs_state_members[] = {
    MEMBER_PATH,
    {"revision", "integer", NULL, true, NULL, NULL, "Number of the newest revision."},
    MEMBER_ETAG,
    {"changed", "boolean", NULL, true, NULL, NULL,
     "Whether the document changed. False if it had this text already."},
    {0},
};
static const struct api_member docs_moved_members[] = {
    MEMBER_PATH,
    {"links_rewritten", "integer", NULL, true, NULL, NULL,
     "Number of links that were rewritten, in this document and in others."},
    {0},
};
static const struct api_member docs_revision_members[] = {
    {"revision", "integer", NULL, true, NULL, NULL, "Number of the revision, from 1."},
    {"at", "string", NULL, true, "date-time", NULL, "Time when the revision was written or found."},
    {"kind", "string", NULL, true, NULL, kinds,
     "What made the revision; outside: another program saved the file."},
    {"author", "string", NULL, false, NULL, NULL, "Author, if known."},
    {"reason", "string", NULL, false, NULL, NULL, "Reason, if one was given."},
    MEMBER_PATH,
    MEMBER_SIZE,
    MEMBER_ETAG,
    {"has_text", "boolean", NULL, true, NULL, NULL,
     "Whether the text is stored. `history_keep` of the folder deletes replaced texts."},
    {"content", "string", NULL, false, NULL, NULL, "Text of the revision; not in lists."},
    {0},
};
static const struct api_member docs_revision_list_members[] = {
    MEMBER_PATH,
    {"revisions", "array", "Revision", true, NULL, NULL,
     "The revisions, newest first, without their texts."},
    MEMBERS_PAGE,
    {0},
};
static const struct api_member docs_suggestion_members[] = {
    {"id", "string", NULL, true, NULL, NULL,
     "Id for `holdfast docs accept`, computed from the markup."},
    {"type", "string", NULL, true, NULL, types, "Kind of the suggestion."},
    {"content", "string", NULL, true, NULL, NULL,
     "New text, or the old text if there is no new one."},
    {"old_content", "string|null", NULL, true, NULL, NULL, "Text that the suggestion removes."},
    {"new_content", "string|null", NULL, true, NULL, NULL, "Text that the suggestion adds."},
    {"author", "string|null", NULL, true, NULL, NULL, "Author of the suggestion, if known."},
    {"timestamp", "integer|null", NULL, true, NULL, NULL,
     "Time of the suggestion, in milliseconds since 1970."},
    {"from", "integer", NULL, true, NULL, NULL,
     "Position of the first byte of the markup in the text."},
    {"to", "integer", NULL, true, NULL, NULL, "Position after the last byte of the markup."},
    {"raw_markup", "string", NULL, true, NULL, NULL, "The markup itself."},
    {"context_before", "string", NULL, true, NULL, NULL,
     "Up to 60 bytes of accepted text beside the suggestion."},
    {"context_after", "string", NULL, true, NULL, NULL,
     "Up to 60 bytes of accepted text beside the suggestion."},
    {"line", "integer", NULL, true, NULL, NULL, "Line in the accepted text, from 1."},
    {0},
};
static const struct api_member docs_file_members[] = {
    MEMBER_PATH,
    MEMBER_ETAG,
    {"total", "integer", NULL, true, NULL, NULL,
     "Number of suggestions in the document; at most 1,000 are shown."},
    {"suggestions", "array", "Suggestion", true, NULL, NULL,
     "The suggestions, in the order of the text."},
    {0},
};
static const struct api_member docs_suggestion_list_members[] = {
    {"files", "array", "SuggestionFile", true, NULL, NULL, "The documents that have suggestions."},
    MEMBERS_PAGE,
    {0},
};
static const struct api_member docs_failed_members[] = {
    {"index", "integer", NULL, true, NULL, NULL, "Position in the list of the request, from 0."},
    {"reason", "string", NULL, true, NULL, NULL, "Reason why the suggestion was not decided."},
    {0},
};
static const struct api_member docs_applied_members[] = {
    {"applied", "array", NULL, true, "integer", NULL,
     "Position in the list of the request, from 0."},
    {"failed", "array", "SuggestionFailed", true, NULL, NULL,
     "The suggestions that were not decided."},
    {"remaining_suggestions", "integer", NULL, true, NULL, NULL,
     "Number of suggestions that the document has now."},
    {"removed", "boolean", NULL, true, NULL, NULL,
     "Whether the document was deleted: it was created by an agent and its whole text was "
     "rejected. Its history stays."},
    MEMBER_PATH,
    {"revision", "integer", NULL, true, NULL, NULL, "Number of the newest revision."},
    MEMBER_ETAG,
    {0},
};

static const struct api_schema schemas[] = {
    {"Document", docs_document_members, "A document with its text.", API_ETAG},
    {"DocumentEntry", docs_entry_members, "A document in a list."},
    {"DocumentList", docs_list_members, "A page of documents.", API_LINK},
    {"DocumentState", docs_state_members, "The state of a document after a change.", API_ETAG},
    {"DocumentMoved", docs_moved_members, "The new path of a document."},
    {"Revision", docs_revision_members, "A revision of a document.", API_ETAG},
    {"RevisionList", docs_revision_list_members, "A page of a document's history.", API_LINK},
    {"Suggestion", docs_suggestion_members, "A suggestion or comment that has not been decided."},
    {"SuggestionFile", docs_file_members, "A document with its suggestions."},
    {"SuggestionList", docs_suggestion_list_members, "A page of documents with suggestions.",
     API_LINK},
    {"SuggestionFailed", docs_failed_members, "A suggestion that could not be decided."},
    {"SuggestionsApplied", docs_applied_members, "The result of decisions about suggestions.",
     API_ETAG},
    {0},
};

/* Operations. */

#define FILES "/api/v1/docs/files"
#define OP(METHOD, PATTERN, ID, ACCESS, RUN, SUMMARY)                                              \
    .method = (METHOD), .pattern = (PATTERN), .id = (ID), .access = (ACCESS), .run = (RUN),        \
    .summary = (SUMMARY)

static const struct api_operation operations[] = {
    {OP("GET", FILES, "listDocuments", API_READ, api_list_documents,
        "Lists the documents of the folders that the caller may use."),
     .params = docs_list_params, .answers = docs_list_answers},
    {OP("GET", FILES "/{folder}/{+path}", "getDocument", API_READ, api_get_document,
        "Returns the text of a document, with its suggestions as CriticMarkup."),
     .params = docs_get_params, .answers = docs_get_answers},
    {OP("PUT", FILES "/{folder}/{+path}", "putDocument", API_WRITE, api_put_document,
        "Writes a document without review."),
     .is_review = true, .params = docs_put_params, .body = &body_document,
     .answers = docs_put_answers},
    {OP("GET", FILES "/{folder}/{+path:.md}/history", "listRevisions", API_READ, api_list_revisions,
        "Lists the revisions of a document, newest first."),
     .params = docs_history_params, .answers = docs_history_answers},
    {OP("GET", FILES "/{folder}/{+path:.md}/history/{revision:#}", "getRevision", API_READ,
        api_get_revision, "Returns a revision with its text."),
     .params = docs_revision_params, .answers = docs_revision_answers},
    {OP("POST", FILES "/{folder}/{+path:.md}/restore", "restoreDocument", API_WRITE,
        api_restore_document, "Restores an earlier revision as a new one."),
     .is_review = true, .params = docs_restore_params, .body = &body_restore,
     .answers = docs_restore_answers},
    {OP("POST", FILES "/{folder}/{+path:.md}/move", "moveDocument", API_WRITE, api_move_document,
        "Moves or renames a document and rewrites the links to it."),
     .is_review = true, .params = docs_move_params, .body = &body_move,
     .answers = docs_move_answers},
    {OP("GET", "/api/v1/docs/suggestions", "listSuggestions", API_READ, api_list_suggestions,
        "Lists suggestions and comments that have not been decided."),
     .params = docs_suggestions_params, .answers = docs_suggestions_answers},
    {OP("POST", "/api/v1/docs/suggestions/apply", "applySuggestions", API_WRITE,
        api_apply_suggestions,
        "Accepts, rejects or answers suggestions of one document, as one revision."),
     .is_review = true, .params = no_params, .body = &body_apply, .answers = docs_apply_answers},
    {0},
};

static const struct api_tag tag = {
    "/docs/", "Documents",
    "The knowledge base: documents, their history, and the review of suggestions."};

static const struct api_example examples[] = {
    {"path", "\"Lens/notes/plan.md\""},
    {"revision", "3"},
    {"new_path", "\"Lens/notes/plan.md\""},
    {"etag", "\"\\\"9f86d081884c\\\"\""},
    {"content", "\"The plan\\n\""},
    {"author", "\"Ada\""},
    {"action", "\"accept\""},
    {"suggestions", "[{\"raw_markup\":\"{++new++}\",\"from\":120}]"},
    {"raw_markup", "\"{++new++}\""},
    {"type", "\"addition\""},
    {"old_content", "null"},
    {"new_content", "\"new\""},
    {"timestamp", "1794730000000"},
    {"from", "120"},
    {"to", "129"},
    {"applied", "[0]"},
    {0},
};

static const struct api_member ready_members[] = {
    {"folders", "object", NULL, false, NULL, NULL,
     "On /readyz, if folders of documents are configured: the state of each folder (served, lost, "
     "unavailable), by name or counted like servers. They do not affect readiness."},
    {0},
};

const struct api_part docs_api = {
    .operations = operations,
    .after = "endLogin",
    .schemas = schemas,
    .after_schema = "SignInList",
    .tag = &tag,
    .after_tag = "Interface",
    .examples = examples,
    .write_ready = docs_write_ready,
    .ready_members = ready_members,
};
