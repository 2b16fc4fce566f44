/* SPDX-License-Identifier: Apache-2.0 */
/* Finds tools by what they do: BM25 over the words of their names, titles, descriptions and
 * schemas, and over synonyms of these words (words.h).
 *
 * A text may have several queries, separated by "|"; a tool gets the score of its best query.  A
 * query that is the name of a server, or begins with one and a colon, is limited to that server. */
#ifndef HOLDFAST_PROFILE_RANK_H
#define HOLDFAST_PROFILE_RANK_H

#include "upstream/catalog.h"

#define RANK_QUERIES_BYTES 2000 /* bytes of a text with queries that are read */
#define RANK_TERMS_MAX 32       /* words of a query that count */
#define RANK_QUERY_WORDS 96     /* words of a query that are read, idle ones too */

struct rank_candidate {
    struct str server;
    struct catalog *catalog; /* borrowed */
    size_t item;             /* index in the catalog's tools */
    double confidence;       /* set by rank_tools(): 0 to 1 */
};

/* Sets the confidence of each candidate, and sorts them: best first, equal ones in their old order.
 * Returns how many reach `threshold`; candidates with 0 never do.  A tool of a server may be a
 * candidate only once.  For a text without words all candidates get 1 and keep their order. */
size_t rank_tools(struct rank_candidate *candidates, size_t n, struct str queries, double threshold,
                  struct arena *mem);

#endif
