/* SPDX-License-Identifier: Apache-2.0 */
/* The operations on documents: a part of the table of REST (api/api.h). */
#include "docs/api/table.h"

#include "docs/api/bodies.h"
#include "docs/api/request.h"

/* Parameters. */

#define PARAM_FOLDER                                                                               \
    {                                                                                              \
        .name = "folder", .in = "path", .type = "string", .is_required = true, .min = 1,           \
        .help = "A configured folder.", .example = "\"Lens\""                                      \
    }
#define PARAM_PATH                                                                                 \
    {                                                                                              \
        .name = "path", .in = "path", .type = "string", .is_required = true, .min = 1,             \
        .help = "The document inside its folder; slashes stand as they are, all else is "          \
                "percent-encoded.",                                                                \
        .example = "\"notes/plan.md\"", .has_slashes = true                                        \
    }
#define PARAM_ONE_FOLDER                                                                           \
    {                                                                                              \
        .name = "folder", .in = "query", .type = "string", .min = 1,                               \
        .help = "Only this one; all that the caller may use when absent."                          \
    }
#define PARAM_LIMIT                                                                                \
    {                                                                                              \
        .name = "limit", .in = "query", .type = "integer", .min = 1, .max = STORE_PAGE_MAX,        \
        .default_text = "50", .help = "Rows in a page."                                            \
    }
#define PARAM_CURSOR                                                                               \
    {                                                                                              \
        .name = "cursor", .in = "query", .type = "string", .min = 1, .max = 2000,                  \
        .help = "next_cursor of the page before."                                                  \
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
     .help = "Also as it reads when all that is suggested is accepted."},
    PARAM_IF_NONE_MATCH("An ETag that is known already: 304 while it is still so."),
    {0},
};
static const struct api_param docs_put_params[] = {
    PARAM_FOLDER,
    PARAM_PATH,
    {.name = "If-Match",
     .in = "header",
     .type = "string",
     .help = "The ETag of what was read, or * for whatever is there. One of the two is needed."},
    PARAM_IF_NONE_MATCH("* makes a new document."),
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
     .help = "Its number in the history.",
     .example = "3"},
    {0},
};
static const struct api_param docs_restore_params[] = {
    PARAM_FOLDER,
    PARAM_PATH,
    {.name = "If-Match",
     .in = "header",
     .type = "string",
     .help = "Only while the document is this one; whatever it is when absent."},
    {0},
};
static const struct api_param docs_move_params[] = {PARAM_FOLDER, PARAM_PATH, {0}};
static const struct api_param docs_suggestions_params[] = {
    PARAM_ONE_FOLDER,
    {.name = "path",
     .in = "query",
     .type = "string",
     .min = 1,
     .help =
         "Only this document of the folder, or those below this path; 404 when there are none."},
    PARAM_LIMIT,
    PARAM_CURSOR,
    {0},
};

/* Answers. */

#define UNCHANGED                                                                                  \
    {                                                                                              \
        304, NULL, "It is still what If-None-Match names."                                         \
    }
#define BUSY                                                                                       \
    {                                                                                              \
        409, "Problem", "Somebody saves it again and again."                                       \
    }
#define STALE                                                                                      \
    {                                                                                              \
        412, "Problem", "It is not what the condition names; ETag is what it is now."              \
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
    {200, "DocumentList", "A page, by folder and path."}, {0}};
static const struct api_answer docs_get_answers[] = {
    {200, "Document", "The document."}, UNCHANGED, {0}};
static const struct api_answer docs_put_answers[] = {
    {200, "DocumentState", "Written."},
    {201, "DocumentState", "Made; Location names it."},
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
    {200, "DocumentState", "It is as it was."}, BUSY, STALE, TOO_LARGE, BAD_TYPE, {0}};
static const struct api_answer docs_move_answers[] = {
    {200, "DocumentMoved", "It stands at its new path."},
    {409, "Problem", "Something is at the new path."},
    TOO_LARGE,
    BAD_TYPE,
    {0}};
static const struct api_answer docs_suggestions_answers[] = {
    {200, "SuggestionList",
     "A page, by folder and path. A page may be short or empty and others follow it: go on while "
     "there is a next_cursor."},
    {0}};
static const struct api_answer docs_apply_answers[] = {
    {200, "SuggestionsApplied", "What became of each."}, BUSY, TOO_LARGE, BAD_TYPE, {0}};

/* Members. */

static const char *const types[] = {"addition", "deletion",  "substitution",
                                    "comment",  "highlight", NULL};
static const char *const kinds[] = {"outside", "create", "suggest", "comment",   "accept", "reject",
                                    "write",   "move",   "restore", "recovered", NULL};

#define MEMBER_PATH                                                                                \
    {                                                                                              \
        "path", "string", NULL, true, NULL, NULL, "As Folder/Path.md."                             \
    }
#define MEMBER_ETAG                                                                                \
    {                                                                                              \
        "etag", "string", NULL, true, NULL, NULL, "Of its bytes, as in the header ETag."           \
    }
#define MEMBER_SIZE                                                                                \
    {                                                                                              \
        "size", "integer", NULL, true, NULL, NULL, "Bytes of its text."                            \
    }
#define MEMBERS_PAGE                                                                               \
    {"count", "integer", NULL, true, NULL, NULL, "Rows in this answer."},                          \
    {                                                                                              \
        "next_cursor", "string|null", NULL, true, NULL, NULL, "Where the next page begins."        \
    }

static const struct api_member docs_entry_members[] = {
    MEMBER_PATH,
    MEMBER_SIZE,
    {"modified_at", "string", NULL, true, "date-time", NULL, "When the file was written last."},
    {0},
};
static const struct api_member docs_list_members[] = {
    {"files", "array", "DocumentEntry", true, NULL, NULL, "By folder and path."},
    MEMBERS_PAGE,
    {0},
};
static const struct api_member docs_document_members[] = {
    MEMBER_PATH,
    {"revision", "integer", NULL, true, NULL, NULL, "Its number in the history."},
    MEMBER_ETAG,
    MEMBER_SIZE,
    {"modified_at", "string", NULL, true, "date-time", NULL, "When the file was written last."},
    {"content", "string", NULL, true, NULL, NULL, "Its text, with the markup in it."},
    {"accepted", "string", NULL, false, NULL, NULL, "Its text when all is accepted."},
    {0},
};
static const struct api_member docs_state_members[] = {
    MEMBER_PATH, {"revision", "integer", NULL, true, NULL, NULL, "The newest in its history."},
    MEMBER_ETAG, {"changed", "boolean", NULL, true, NULL, NULL, "False when it already was so."},
    {0},
};
static const struct api_member docs_moved_members[] = {
    MEMBER_PATH,
    {"links_rewritten", "integer", NULL, true, NULL, NULL,
     "Links in it and in other documents that were written anew."},
    {0},
};
static const struct api_member docs_revision_members[] = {
    {"revision", "integer", NULL, true, NULL, NULL, "Its number, from 1."},
    {"at", "string", NULL, true, "date-time", NULL, "When it came to be, or was found."},
    {"kind", "string", NULL, true, NULL, kinds, "How; outside: saved by another program."},
    {"author", "string", NULL, false, NULL, NULL, "Who, where that is known."},
    {"reason", "string", NULL, false, NULL, NULL, "Why, where somebody said."},
    MEMBER_PATH,
    MEMBER_SIZE,
    MEMBER_ETAG,
    {"content", "string", NULL, false, NULL, NULL, "Its text; not in lists."},
    {0},
};
static const struct api_member docs_revision_list_members[] = {
    MEMBER_PATH,
    {"revisions", "array", "Revision", true, NULL, NULL, "Newest first, without their texts."},
    MEMBERS_PAGE,
    {0},
};
static const struct api_member docs_suggestion_members[] = {
    {"id", "string", NULL, true, NULL, NULL, "For `holdfast docs accept`: of its markup."},
    {"type", "string", NULL, true, NULL, types, "What it does to the text."},
    {"content", "string", NULL, true, NULL, NULL, "New text; old text where that is all."},
    {"old_content", "string|null", NULL, true, NULL, NULL, "What it takes away."},
    {"new_content", "string|null", NULL, true, NULL, NULL, "What it adds."},
    {"author", "string|null", NULL, true, NULL, NULL, "Who suggests, where it says."},
    {"timestamp", "integer|null", NULL, true, NULL, NULL, "When, in milliseconds since 1970."},
    {"from", "integer", NULL, true, NULL, NULL, "Where its markup begins: bytes of the text."},
    {"to", "integer", NULL, true, NULL, NULL, "Where it ends."},
    {"raw_markup", "string", NULL, true, NULL, NULL, "The markup itself."},
    {"context_before", "string", NULL, true, NULL, NULL, "Up to 60 bytes of accepted text."},
    {"context_after", "string", NULL, true, NULL, NULL, "Up to 60 bytes of accepted text."},
    {"line", "integer", NULL, true, NULL, NULL, "Of the accepted text, from 1."},
    {0},
};
static const struct api_member docs_file_members[] = {
    MEMBER_PATH,
    MEMBER_ETAG,
    {"total", "integer", NULL, true, NULL, NULL, "How many it has; at most 1,000 are shown."},
    {"suggestions", "array", "Suggestion", true, NULL, NULL, "In the order of the text."},
    {0},
};
static const struct api_member docs_suggestion_list_members[] = {
    {"files", "array", "SuggestionFile", true, NULL, NULL, "Those that have any."},
    MEMBERS_PAGE,
    {0},
};
static const struct api_member docs_failed_members[] = {
    {"index", "integer", NULL, true, NULL, NULL, "Which of the request's, from 0."},
    {"reason", "string", NULL, true, NULL, NULL, "Why it was left alone."},
    {0},
};
static const struct api_member docs_applied_members[] = {
    {"applied", "array", NULL, true, "integer", NULL, "Which of the request's, from 0."},
    {"failed", "array", "SuggestionFailed", true, NULL, NULL, "Those that were left alone."},
    {"remaining_suggestions", "integer", NULL, true, NULL, NULL, "How many the document has now."},
    {"removed", "boolean", NULL, true, NULL, NULL,
     "An agent had made it, all of it was rejected, and it is gone; its history stays."},
    MEMBER_PATH,
    {"revision", "integer", NULL, true, NULL, NULL, "The newest in its history."},
    MEMBER_ETAG,
    {0},
};

static const struct api_schema schemas[] = {
    {"Document", docs_document_members, "A document with its text.", API_ETAG},
    {"DocumentEntry", docs_entry_members, "A document in a list."},
    {"DocumentList", docs_list_members, "A page of documents.", API_LINK},
    {"DocumentState", docs_state_members, "What a document is after a change.", API_ETAG},
    {"DocumentMoved", docs_moved_members, "Where a document is after a move."},
    {"Revision", docs_revision_members, "What a document was, and how that came to be.", API_ETAG},
    {"RevisionList", docs_revision_list_members, "A page of a document's history.", API_LINK},
    {"Suggestion", docs_suggestion_members, "What waits for a person's decision."},
    {"SuggestionFile", docs_file_members, "A document with its suggestions."},
    {"SuggestionList", docs_suggestion_list_members, "A page of documents with suggestions.",
     API_LINK},
    {"SuggestionFailed", docs_failed_members, "A suggestion that could not be settled."},
    {"SuggestionsApplied", docs_applied_members, "What became of suggestions.", API_ETAG},
    {0},
};

/* Operations. */

#define FILES "/api/v1/docs/files"
#define OP(METHOD, PATTERN, ID, ACCESS, RUN, SUMMARY)                                              \
    .method = (METHOD), .pattern = (PATTERN), .id = (ID), .access = (ACCESS), .run = (RUN),        \
    .summary = (SUMMARY)

static const struct api_operation operations[] = {
    {OP("GET", FILES, "listDocuments", API_READ, api_list_documents,
        "The documents of folders that the caller may use."),
     .params = docs_list_params, .answers = docs_list_answers},
    {OP("GET", FILES "/{folder}/{+path}", "getDocument", API_READ, api_get_document,
        "A document's text, the suggestions in it as CriticMarkup."),
     .params = docs_get_params, .answers = docs_get_answers},
    {OP("PUT", FILES "/{folder}/{+path}", "putDocument", API_WRITE, api_put_document,
        "Writes a document, as a person does."),
     .is_review = true, .params = docs_put_params, .body = &body_document,
     .answers = docs_put_answers},
    {OP("GET", FILES "/{folder}/{+path:.md}/history", "listRevisions", API_READ, api_list_revisions,
        "What the document was, newest first."),
     .params = docs_history_params, .answers = docs_history_answers},
    {OP("GET", FILES "/{folder}/{+path:.md}/history/{revision:#}", "getRevision", API_READ,
        api_get_revision, "What the document was, with its text."),
     .params = docs_revision_params, .answers = docs_revision_answers},
    {OP("POST", FILES "/{folder}/{+path:.md}/restore", "restoreDocument", API_WRITE,
        api_restore_document, "Makes the document what it was, as a new revision."),
     .is_review = true, .params = docs_restore_params, .body = &body_restore,
     .answers = docs_restore_answers},
    {OP("POST", FILES "/{folder}/{+path:.md}/move", "moveDocument", API_WRITE, api_move_document,
        "Moves or renames a document and rewrites the links to it."),
     .is_review = true, .params = docs_move_params, .body = &body_move,
     .answers = docs_move_answers},
    {OP("GET", "/api/v1/docs/suggestions", "listSuggestions", API_READ, api_list_suggestions,
        "Suggestions and comments that wait for a person."),
     .params = docs_suggestions_params, .answers = docs_suggestions_answers},
    {OP("POST", "/api/v1/docs/suggestions/apply", "applySuggestions", API_WRITE,
        api_apply_suggestions,
        "Accepts, rejects or answers suggestions of one document, as one revision."),
     .is_review = true, .params = no_params, .body = &body_apply, .answers = docs_apply_answers},
    {0},
};

static const struct api_tag tag = {
    "/docs/", "Documents",
    "The knowledge base: documents, their history, and the review of what agents suggest."};

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
     "On /readyz, where folders of documents are configured: the state of each (served, lost, "
     "unavailable), by name or counted as servers are. None of them makes it unready."},
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
    .tell_ready = docs_tell_ready,
    .ready_members = ready_members,
};
