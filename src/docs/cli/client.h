/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the REST operations on documents, for commands.  It connects to the socket of the
 * data directory as the local admin, or to a URL with the key in HOLDFAST_KEY.  Its results live as
 * long as the command. */
#ifndef HOLDFAST_DOCS_CLI_CLIENT_H
#define HOLDFAST_DOCS_CLI_CLIENT_H

#include "cli/cli.h"
#include "cli/control.h"
#include "cli/temporary.h"
#include "json/read.h"

struct docs_client {
    struct arena *mem;
    struct control *control;
    struct temporary holdfast; /* for the time of this command, if none runs */
    struct str author;         /* name of the user who runs the command; absent: unknown */
};
/* If no Holdfast runs on the data directory, one is started for this command. */
must_check bool docs_client_open(struct cli *cli, struct docs_client *ret, struct error *err);
void docs_client_close(struct docs_client *c); /* a zeroed client is fine */

/* A suggestion as the list shows it; a text that the suggestion does not have is absent. */
struct docs_item {
    struct str path, etag, json;
    struct str id, type, old, fresh, author, raw, before, after;
    int64_t time_ms, from, line; /* time_ms 0: unknown */
};
bool docs_item_is_change(const struct docs_item *i); /* false: a comment or a highlight */

/* All pages of suggestions: of all folders, of one folder, or of one document ("Folder/Path.md").
 * *ret_hidden: how many more suggestions there are than are listed. */
must_check bool docs_client_suggestions(struct docs_client *c, struct str where,
                                        struct docs_item **ret, size_t *ret_n, int64_t *ret_hidden,
                                        struct error *err);

struct docs_outcome {
    int64_t revision;
    struct str etag, json;
    size_t applied, failed;
    struct str reason; /* of the first failed suggestion */
};
/* Decides or answers suggestions of one document; many suggestions are sent in batches. */
struct docs_decision {
    const char *action; /* "accept", "reject", "reply" */
    const struct docs_item *items;
    size_t n;
    struct str text, reason; /* absent: none */
};
must_check bool docs_client_decide(struct docs_client *c, const struct docs_decision *d,
                                   struct docs_outcome *ret, struct error *err);
/* Restores a revision if the current ETag of the document is `etag` (absent: any). */
must_check bool docs_client_restore(struct docs_client *c, struct str path, int64_t revision,
                                    struct str etag, struct str reason, struct docs_outcome *ret,
                                    struct error *err);

/* Moves a document inside its folder; *ret_links: how many links were rewritten. */
must_check bool docs_client_move(struct docs_client *c, struct str path, struct str new_path,
                                 struct str reason, int64_t *ret_links, struct str *ret_json,
                                 struct error *err);

/* GET, parsed.  `ret_json` may be NULL. */
must_check bool docs_client_get(struct docs_client *c, struct str target, struct js_doc *ret,
                                struct str *ret_json, struct error *err);
/* "/api/v1/docs/files/Folder/Path.md" + tail; ERR_USAGE when `path` is not Folder/Path.md. */
must_check bool docs_client_target(struct docs_client *c, struct str path, const char *tail,
                                   struct str *ret, struct error *err);
/* A value percent-encoded for a query. */
struct str docs_client_value(struct docs_client *c, struct str text);
/* Calls `fn` for each row under `name` on the pages of a list, at most `limit` rows (0: all).  `fn`
 * returns false, with err, to stop. */
typedef bool docs_row_fn(void *arg, const struct js_doc *doc, const struct js_node *row,
                         struct error *err);
must_check bool docs_client_each(struct docs_client *c, struct str target, const char *name,
                                 int64_t limit, docs_row_fn *fn, void *arg, struct error *err);

#endif
