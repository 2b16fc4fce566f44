/* SPDX-License-Identifier: Apache-2.0 */
/* English as far as finding a tool needs it: cuts text into words without their endings, and knows
 * synonyms.  A word is identified by the hash of its stem.
 *
 * The table (words_deeds.c, words_things.c, words_forms.c) becomes an index of a few thousand
 * hashes at the first use and never changes after; every lookup is a binary search. */
#ifndef HOLDFAST_PROFILE_WORDS_H
#define HOLDFAST_PROFILE_WORDS_H

#include "base/str.h"

#define WORDS_OTHERS_MAX 64 /* synonyms of one word */

enum word_mark {
    WORD_IDLE = 1,      /* carries no meaning: "please", "the", "7" */
    WORD_ASKS = 2,      /* turns a query that begins with it into a question */
    WORD_WEAK = 4,      /* carries little meaning: "make", "today" */
    WORD_PARTICLE = 8,  /* ends a phrase that may contain other words: "away" */
    WORD_DESTROYS = 16, /* removes existing data: "delete" */
    WORD_PHRASE = 32,   /* only for words_phrase() */
};
struct word {
    uint32_t stem;
    uint32_t marks;
};
struct word_other {
    uint32_t stem;
    float strength; /* less than 1, the strength of the word itself */
};

/* Cuts at most `max` words from a text.  "HTTPServer_v2" is http, server, httpserver, v2: the
 * pieces of a run are followed by the run, for names like GitHub. */
size_t words_cut(struct str text, struct word *ret, size_t max);
struct word words_of(const char *word);
/* The stem of the phrase; 0 when the two words do not form one. */
uint32_t words_phrase(uint32_t first, uint32_t second);
/* WORD_WEAK, WORD_PARTICLE, WORD_DESTROYS: the marks that depend on the stem alone. */
uint32_t words_marks(uint32_t stem);
/* The synonyms and implied words of a stem, each once, in any order; at most `max`.  Returns their
 * number. */
size_t words_others(uint32_t stem, struct word_other *ret, size_t max);

#endif
