/* SPDX-License-Identifier: Apache-2.0 */
/* The tools of the docs server, in the order of their list.  Agents were taught these names,
 * descriptions and schemas; those of read and edit must not change by a letter. */
#include "docs/server/server.h"

#include "docs/server/tools.h"

#define SESSION_PROPERTY                                                                           \
    "\"session_id\":{\"type\":\"string\",\"description\":\"The session value of an earlier "       \
    "response; optional.\"}"
#define FILE_PROPERTY                                                                              \
    "\"file_path\":{\"type\":\"string\",\"description\":\"Path to the document (e.g. "             \
    "'Lens/Photosynthesis.md')\"}"
#define READ_ONLY ",\"annotations\":{\"readOnlyHint\":true}}"
#define WRITES ",\"annotations\":{\"readOnlyHint\":false,\"destructiveHint\":false}}"
#define SCHEMA(required, properties)                                                               \
    ",\"inputSchema\":{\"type\":\"object\",\"required\":[" required                                \
    "],\"additionalProperties\":false,\"properties\":{" properties "}}"

static const struct builtin_tool tools[] = {
    {
        .name = "read",
        .definition =
            "{\"name\":\"read\",\"description\":\"Reads a document from the knowledge base. "
            "Returns content with line numbers (cat -n format). Supports partial reads via offset "
            "and limit. " LIFETIME_SENTENCE
            " The response includes a [session: ...] value — pass this to the edit tool's "
            "session_id parameter when editing.\"" SCHEMA(
                "\"file_path\"",
                FILE_PROPERTY ",\"offset\":{\"type\":\"integer\",\"description\":\"The line "
                              "number to start reading from (1-based)\"},\"limit\":{\"type\":"
                              "\"integer\",\"description\":\"The number of lines to read "
                              "(default 2000)\"}," SESSION_PROPERTY) READ_ONLY,
        .run = docs_tool_read,
        .begins_session = true,
    },
    {
        .name = "edit",
        .definition =
            "{\"name\":\"edit\",\"description\":\"Edit a document by replacing old_string with "
            "new_string. The change is wrapped in CriticMarkup ({--old--}{++new++}) for human "
            "review. You must read the document first.\",\"inputSchema\":{\"type\":\"object\","
            "\"required\":[\"file_path\",\"old_string\",\"new_string\",\"session_id\"],"
            "\"additionalProperties\":false,\"properties\":{" FILE_PROPERTY
            ",\"old_string\":{\"type\":\"string\",\"description\":\"The exact text to find and "
            "replace. Must match exactly and be unique in the document.\"},\"new_string\":{"
            "\"type\":\"string\",\"description\":\"The replacement text. Empty string for "
            "deletion.\"},\"session_id\":{\"type\":\"string\",\"description\":\"The session value "
            "from the read tool's response. Required to verify the document was read before "
            "editing.\"}}}" WRITES,
        .run = docs_tool_edit,
    },
    {
        .name = "glob",
        .definition =
            "{\"name\":\"glob\",\"description\":\"Finds documents by name pattern, such as "
            "'**/*.md' or 'Lens/Biology/*'. Returns sorted paths.\"" SCHEMA(
                "\"pattern\"",
                "\"pattern\":{\"type\":\"string\",\"description\":\"Glob pattern; ** stands for "
                "any number of folders\"},\"path\":{\"type\":\"string\",\"description\":\"Folder "
                "to search in (e.g. 'Lens' or 'Lens/Biology'); all when "
                "omitted\"}," SESSION_PROPERTY) READ_ONLY,
        .run = docs_tool_glob,
    },
    {
        .name = "grep",
        .definition =
            "{\"name\":\"grep\",\"description\":\"Searches document contents with a regular "
            "expression. Line numbers are those that read shows.\"" SCHEMA(
                "\"pattern\"",
                "\"pattern\":{\"type\":\"string\",\"description\":\"Regular expression (PCRE)\"},"
                "\"path\":{\"type\":\"string\",\"description\":\"Folder or document to search in; "
                "all when omitted\"},\"output_mode\":{\"type\":\"string\",\"enum\":["
                "\"files_with_matches\",\"content\",\"count\"],\"description\":\"Paths (default), "
                "matching lines, or counts\"},\"-i\":{\"type\":\"boolean\",\"description\":"
                "\"Ignore case\"},\"-C\":{\"type\":\"integer\",\"description\":\"Lines of context "
                "before and after\"},\"-A\":{\"type\":\"integer\",\"description\":\"Lines of "
                "context after\"},\"-B\":{\"type\":\"integer\",\"description\":\"Lines of context "
                "before\"},\"head_limit\":{\"type\":\"integer\",\"description\":\"Show at most so "
                "many lines or entries\"}," SESSION_PROPERTY) READ_ONLY,
        .run = docs_tool_grep,
    },
    {
        .name = "get_links",
        .definition = "{\"name\":\"get_links\",\"description\":\"Lists the documents that link to "
                      "a document and those it links to.\"" SCHEMA("\"file_path\"", FILE_PROPERTY
                                                                   "," SESSION_PROPERTY) READ_ONLY,
        .run = docs_tool_get_links,
    },
    {
        .name = "create_session",
        .definition =
            "{\"name\":\"create_session\",\"description\":\"Begins a session and returns its "
            "session_id on the first line; the other tools take it. read begins one by itself, so "
            "this is needed only to name yourself. " LIFETIME_SENTENCE "\"" SCHEMA(
                "",
                "\"name\":{\"type\":\"string\",\"description\":\"Whose AI is at work; suggestions "
                "are signed with it\"},\"model\":{\"type\":\"string\",\"description\":\"Which "
                "model it is\"}") WRITES,
        .run = docs_tool_create_session,
    },
    {
        .name = "end_session",
        .definition =
            "{\"name\":\"end_session\",\"description\":\"Ends a session that is not needed any "
            "more. What was suggested stays.\"" SCHEMA(
                "\"session_id\"",
                "\"session_id\":{\"type\":\"string\",\"description\":\"The session to end\"}")
                WRITES,
        .run = docs_tool_end_session,
    },
    {
        .name = "list_sessions",
        .definition = "{\"name\":\"list_sessions\",\"description\":\"Lists your live sessions, "
                      "newest first.\"" SCHEMA("", SESSION_PROPERTY) READ_ONLY,
        .run = docs_tool_list_sessions,
    },
    {
        .name = "search",
        .definition =
            "{\"name\":\"search\",\"description\":\"Finds documents by words, best first. All "
            "words must occur; \\\"quoted phrases\\\", prefix* and -word are understood.\"" SCHEMA(
                "\"query\"",
                "\"query\":{\"type\":\"string\",\"description\":\"What to look for\"},\"limit\":{"
                "\"type\":\"integer\",\"description\":\"How many (default 20, at most "
                "100)\"}," SESSION_PROPERTY) READ_ONLY,
        .run = docs_tool_search,
    },
    {
        .name = "create",
        .definition =
            "{\"name\":\"create\",\"description\":\"Creates a new Markdown document. Its text is "
            "a suggestion for human review.\"" SCHEMA(
                "\"file_path\",\"content\"",
                FILE_PROPERTY ",\"content\":{\"type\":\"string\",\"description\":\"The text of the "
                              "document\"}," SESSION_PROPERTY) WRITES,
        .run = docs_tool_create,
        .begins_session = true,
    },
    {
        .name = "move",
        .definition =
            "{\"name\":\"move\",\"description\":\"Moves or renames a document inside its folder "
            "and rewrites the links to it. Where edits are suggestions, a document that others "
            "link to is moved by a person.\"" SCHEMA(
                "\"file_path\",\"new_path\"", FILE_PROPERTY
                ",\"new_path\":{\"type\":\"string\",\"description\":\"Where it goes "
                "(e.g. 'Lens/Biology/Photosynthesis.md')\"}," SESSION_PROPERTY) WRITES,
        .run = docs_tool_move,
    },
    {
        .name = "comment",
        .definition =
            "{\"name\":\"comment\",\"description\":\"Adds a comment for people to a passage, or "
            "to the thread that stands there. The text itself is not changed.\"" SCHEMA(
                "\"file_path\",\"quote\",\"comment\"",
                FILE_PROPERTY ",\"quote\":{\"type\":\"string\",\"description\":\"The exact passage "
                              "the comment is about; must be unique in the document\"},"
                              "\"comment\":{\"type\":\"string\",\"description\":\"What to "
                              "say\"}," SESSION_PROPERTY) WRITES,
        .run = docs_tool_comment,
    },
    {.name = NULL},
};

/* What this caller could never do is not offered. */
static bool hides(void *arg, const struct principal *who, struct str tool)
{
    static const struct {
        const char *tool;
        enum docs_agent least;
    } writing[] = {{"edit", AGENT_SUGGEST},
                   {"create", AGENT_SUGGEST},
                   {"move", AGENT_SUGGEST},
                   {"comment", AGENT_COMMENT}};
    const struct docs_server *server = arg;

    for (size_t i = 0; i < countof(writing); i++)
        if (str_eq(tool, str_of(writing[i].tool)))
            return docs_most(server->docs, who) < writing[i].least;
    return false;
}

/* Adds the folders of this caller and the effect of an edit in each. */
static void describe(void *arg, const struct principal *who, struct buf *out)
{
    static const char *const may[] = {[AGENT_READ] = "read only",
                                      [AGENT_COMMENT] = "read and comment",
                                      [AGENT_SUGGEST] = "edits are suggestions",
                                      [AGENT_WRITE] = "edits apply at once"};
    const struct docs_server *server = arg;
    bool read_only = who->scopes && who->scopes->read_only;
    struct arena *mem = arena_new(1 << 16);
    struct docs_call call = {.who = who, .mem = mem};
    const struct docs_folder **folders;
    size_t n;

    docs_begin(server->docs, &call);
    n = docs_visible(&call, &folders);
    buf_addz(out, n ? " Folders: " : " No folder is open to you.");
    for (size_t i = 0; i < n; i++)
        buf_addf(out, "%.*s (%s)%s", STR_ARG(folders[i]->name),
                 may[read_only ? AGENT_READ : folders[i]->agent], i + 1 < n ? ", " : ".");
    docs_end(&call);
    arena_free(mem);
}

const struct builtin server_docs = {
    .name = "docs",
    .instructions = "A knowledge base of Markdown documents. Find documents with search, glob and "
                    "grep, read them with read, and change them with edit, which makes suggestions "
                    "that people review. Pass the session value that read returns to edit.",
    .tools = tools,
    .answers_names = true,
    .hides = hides,
    .describe = describe,
};
