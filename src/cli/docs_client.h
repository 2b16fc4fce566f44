/* SPDX-License-Identifier: Apache-2.0 */
/* The knowledge base as commands see it: a client of the REST operations on documents, over the
 * data directory's socket as the local admin, or over a URL with the key in HOLDFAST_KEY.  What it
 * gives out lives as long as the command. */
#ifndef HOLDFAST_CLI_DOCS_CLIENT_H
#define HOLDFAST_CLI_DOCS_CLIENT_H

#include "cli/cli.h"
#include "cli/control.h"
#include "json/read.h"

struct docs_client {
    struct arena *mem;
    struct control *control;
    struct str author; /* what the person at the terminal is called */
};
/* ERR_UNREACHABLE when nobody serves the data directory. */
must_check bool docs_client_open(struct cli *cli, struct docs_client *ret, struct error *err);
void docs_client_close(struct docs_client *c); /* also fine on a zeroed one */

/* A suggestion as it is listed; texts are absent where it has none. */
struct docs_item {
    struct str path, etag, json;
    struct str id, type, old, fresh, author, raw, before, after;
    int64_t time_ms, from, line; /* time 0: not said */
};
bool docs_item_is_change(const struct docs_item *i); /* no comment, no highlight */

/* All pages of suggestions: of everything, of a folder, or of a document ("Folder/Path.md").
 * *ret_hidden: so many more are there than are shown. */
must_check bool docs_client_suggestions(struct docs_client *c, struct str where,
                                        struct docs_item **ret, size_t *ret_n, int64_t *ret_hidden,
                                        struct error *err);

struct docs_outcome {
    int64_t revision;
    struct str etag, json;
    size_t applied, failed;
    struct str reason; /* of the first that failed */
};
/* Decides or answers suggestions of one document; in batches where there are many. */
struct docs_decision {
    const char *action; /* "accept", "reject", "reply" */
    const struct docs_item *items;
    size_t n;
    struct str text, reason; /* absent: none */
};
must_check bool docs_client_decide(struct docs_client *c, const struct docs_decision *d,
                                   struct docs_outcome *ret, struct error *err);
/* Back to a revision, while the document is `etag` (absent: whatever it is). */
must_check bool docs_client_restore(struct docs_client *c, struct str path, int64_t revision,
                                    struct str etag, struct str reason, struct docs_outcome *ret,
                                    struct error *err);

/* Moves a document inside its folder; *ret_links: how many links were rewritten. */
must_check bool docs_client_move(struct docs_client *c, struct str path, struct str new_path,
                                 struct str reason, int64_t *ret_links, struct str *ret_json,
                                 struct error *err);

/* GET, parsed.  *ret_json may be NULL. */
must_check bool docs_client_get(struct docs_client *c, struct str target, struct js_doc *ret,
                                struct str *ret_json, struct error *err);
/* "/api/v1/docs/files/Folder/Path.md" + tail; ERR_USAGE when it names no document. */
must_check bool docs_client_target(struct docs_client *c, struct str path, const char *tail,
                                   struct str *ret, struct error *err);
/* A value as it stands in a query. */
struct str docs_client_value(struct docs_client *c, struct str text);
/* The rows under `name` of every page of a list, each told once; false stops, with err. */
typedef bool docs_row_fn(void *arg, const struct js_doc *doc, const struct js_node *row,
                         struct error *err);
must_check bool docs_client_each(struct docs_client *c, struct str target, const char *name,
                                 int64_t limit, docs_row_fn *fn, void *arg, struct error *err);

#endif
