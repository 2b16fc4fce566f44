/* SPDX-License-Identifier: Apache-2.0 */
/* Finding tools by what they do: BM25 over the words of their names, titles, descriptions and
 * schemas, and over the words that stand for those (words.h).
 *
 * A text may hold several queries, separated by "|"; a tool counts by the query it fits best.  A
 * query that is the name of a server, or begins with one and a colon, is about that server
 * alone. */
#ifndef HOLDFAST_ROUTE_RANK_H
#define HOLDFAST_ROUTE_RANK_H

#include "upstream/catalog.h"

#define RANK_QUERIES_BYTES 2000 /* of a text with queries that are read */
#define RANK_TERMS_MAX 32       /* words of a query that count */
#define RANK_QUERY_WORDS 96     /* words of a query that are read, idle ones too */

struct rank_candidate {
    struct str server;
    struct catalog *catalog; /* borrowed */
    size_t item;             /* of its tools */
    double confidence;       /* rank_tools() sets it: 0 to 1 */
};

/* Sets how well each fits, and sorts them: the best first, equal ones as they were.  Returns how
 * many reach `threshold`, of which there is none with 0.  No tool of a server may be there twice.
 * A text without any word has all of them, in their order, with 1. */
size_t rank_tools(struct rank_candidate *candidates, size_t n, struct str queries, double threshold,
                  struct arena *mem);

#endif
