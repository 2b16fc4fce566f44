/* SPDX-License-Identifier: Apache-2.0 */
/* Which tools of a catalog say a word, and how much: what rank.c looks words up in.  Read once from
 * the definitions and kept in the catalog's memory. */
#ifndef HOLDFAST_ROUTE_RANK_INDEX_H
#define HOLDFAST_ROUTE_RANK_INDEX_H

#include "upstream/catalog.h"

#define RANK_WORDS_MAX 1024 /* words of a tool that count */

/* What a word weighs by where it stands; those of a server's name are not in the index. */
enum {
    WEIGHT_NAME = 10,
    WEIGHT_TITLE = 4,
    WEIGHT_SERVER = 3,
    WEIGHT_HEAD = 2, /* the first sentence of the description */
    WEIGHT_TEXT = 1,
    WEIGHT_SCHEMA = 1,
};

struct rank_posting {
    uint32_t stem;
    uint32_t tool;
    uint32_t weight;
};
/* Of one catalog, in its memory. */
struct catalog_words {
    struct rank_posting *postings; /* by stem, then by tool */
    size_t n;
    uint32_t *lengths; /* all weights of each tool */
    bool *destroys;    /* each tool, by its name */
};

const struct catalog_words *rank_index_of(struct catalog *c);
/* Those of a word; returns how many. */
size_t rank_index_find(const struct catalog_words *w, uint32_t stem,
                       const struct rank_posting **ret);

#endif
