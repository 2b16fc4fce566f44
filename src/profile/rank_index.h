/* SPDX-License-Identifier: Apache-2.0 */
/* The index that rank.c looks words up in: the tools of a catalog that have a word, and its weight.
 * It is read once from the definitions and kept with the catalog.  A server may list 10,000 tools
 * in 16 MiB, so the index is read in slices between which the loop can do other work. */
#ifndef HOLDFAST_PROFILE_RANK_INDEX_H
#define HOLDFAST_PROFILE_RANK_INDEX_H

#include "upstream/catalog.h"

#define RANK_WORDS_MAX 1024                  /* words of a tool that count */
#define RANK_DEFINITION_MAX (64u * 1024)     /* bytes; of a longer one only the name counts */
#define RANK_POSTINGS_MAX (2u * 1024 * 1024) /* per catalog; of further tools only names count */
#define RANK_SLICE_BYTES (32u * 1024)        /* a slice ends with the tool that passes this … */
#define RANK_SLICE_TOOLS 256                 /* … or after this many tools */
#define RANK_BUCKETS 512

/* The weight of a word by its place.  Words of the server's name are not in the index. */
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
/* Words with the same stem modulo RANK_BUCKETS, by tool. */
struct rank_bucket {
    struct rank_posting *postings;
    size_t n, room;
};
/* The index of one catalog. */
struct catalog_words {
    struct rank_bucket buckets[RANK_BUCKETS];
    size_t n;          /* postings */
    size_t n_read;     /* tools read so far */
    uint32_t *lengths; /* sum of the weights, per tool */
    bool *destroys;    /* per tool: its name has a word with WORD_DESTROYS */
};

/* Reads one more slice; true: the index is complete. */
must_check bool rank_index_step(struct catalog *c);
const struct catalog_words *rank_index_of(struct catalog *c); /* reads the remaining slices */
static inline const struct rank_bucket *rank_index_bucket(const struct catalog_words *w,
                                                          uint32_t stem)
{
    return &w->buckets[stem % RANK_BUCKETS];
}

#endif
