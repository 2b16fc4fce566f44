/* SPDX-License-Identifier: Apache-2.0 */
/* Which tools of a catalog say a word, and how much: what rank.c looks words up in.  Read once from
 * the definitions and kept with the catalog.  A server may list 10,000 tools in 16 MiB, so reading
 * goes in slices that the loop can do between other things. */
#ifndef HOLDFAST_ROUTE_RANK_INDEX_H
#define HOLDFAST_ROUTE_RANK_INDEX_H

#include "upstream/catalog.h"

#define RANK_WORDS_MAX 1024              /* words of a tool that count */
#define RANK_DEFINITION_MAX (64u * 1024) /* bytes; of a longer definition only the name counts */
#define RANK_POSTINGS_MAX (2u * 1024 * 1024) /* of a catalog; likewise for the tools behind it */
#define RANK_SLICE_BYTES (32u * 1024)        /* a slice ends with the tool that passes this … */
#define RANK_SLICE_TOOLS 256                 /* … or with so many */
#define RANK_BUCKETS 512

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
/* Words whose stems have the same low bits, by tool. */
struct rank_bucket {
    struct rank_posting *postings;
    size_t n, room;
};
/* Of one catalog. */
struct catalog_words {
    struct rank_bucket buckets[RANK_BUCKETS];
    size_t n;          /* postings */
    size_t n_read;     /* tools */
    uint32_t *lengths; /* all weights of each tool */
    bool *destroys;    /* each tool, by its name */
};

/* Reads one slice more; true: all of it is read. */
must_check bool rank_index_step(struct catalog *c);
const struct catalog_words *rank_index_of(struct catalog *c); /* reads what is left */
static inline const struct rank_bucket *rank_index_bucket(const struct catalog_words *w,
                                                          uint32_t stem)
{
    return &w->buckets[stem % RANK_BUCKETS];
}

#endif
