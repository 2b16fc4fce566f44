/* SPDX-License-Identifier: Apache-2.0 */
/* A selection: the events that a reader asked for, by five filters.  Each filter is a list; an event
 * passes a filter if one item of its list fits, and an empty list lets every event pass.
 *
 *   types     kinds of events: intent, outcome, note …
 *   session   ids of sessions
 *   server    names of servers
 *   tool      names of tools, alone or as server__tool
 *   outcome   ok, tool_error …; then only events with an outcome pass
 *
 * A selection says nothing about what the reader may see. */
#ifndef HOLDFAST_AUDIT_SELECTION_H
#define HOLDFAST_AUDIT_SELECTION_H

#include "base/arena.h"
#include "base/error.h"
#include "json/read.h"
#include "store/store.h"

#define SELECTION_ITEMS_MAX 32 /* of one list */
#define SELECTION_NAME_MAX 256 /* bytes of one item */

struct selection_list {
    const struct str *items;
    size_t n; /* 0: every event passes */
};
enum { SELECT_SESSION, SELECT_SERVER, SELECT_TOOL, SELECT_OUTCOME, SELECTION_LISTS };
struct selection {
    unsigned kinds; /* 1 << enum event_kind; 0: all */
    struct selection_list lists[SELECTION_LISTS];
};

/* Sets the filter `name` ("types", "session" …) to the items of `value`, separated by commas.  Texts
 * are copied to mem.  ERR_BAD_INPUT: the sentence lists what is allowed; *s is then unchanged. */
must_check bool selection_set(struct selection *s, struct str name, struct str value,
                              struct arena *mem, struct error *err);
/* The same for a JSON value: such a text, or an array of texts. */
must_check bool selection_set_json(struct selection *s, struct str name, const struct js_doc *doc,
                                   const struct js_node *v, struct arena *mem, struct error *err);
/* Sets all filters from {"types":["outcome"],"server":"files,web"}: a text as above, or an array of
 * texts.  NULL, an absent value: no filter. */
must_check bool selection_from_json(const struct js_doc *doc, const struct js_node *v,
                                    struct arena *mem, struct selection *ret, struct error *err);
bool selection_matches(const struct selection *s, const struct event_row *e);
/* A deep copy in mem. */
struct selection selection_dup(const struct selection *s, struct arena *mem);
/* Narrows a filter of the store, so that a page skips events that do not match.  A page may still
 * hold others. */
void selection_narrow(const struct selection *s, struct event_filter *filter);

#endif
