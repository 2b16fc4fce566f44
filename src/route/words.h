/* SPDX-License-Identifier: Apache-2.0 */
/* English as far as finding a tool needs it: text cut into words without their endings, and which
 * words stand for which others.  A word is told by the hash of its stem.
 *
 * The table (words_deeds.c, words_things.c, words_forms.c) is made into an index of a few thousand
 * hashes at the first use and never changes after; every question is a binary search. */
#ifndef HOLDFAST_ROUTE_WORDS_H
#define HOLDFAST_ROUTE_WORDS_H

#include "base/str.h"

#define WORDS_OTHERS_MAX 64 /* that stand for one word */

enum word_mark {
    WORD_IDLE = 1,      /* says nothing: "please", "the", "7" */
    WORD_ASKS = 2,      /* makes a question of a query that begins with it */
    WORD_WEAK = 4,      /* says little: "make", "today" */
    WORD_PARTICLE = 8,  /* ends a phrase that is open for other words: "away" */
    WORD_DESTROYS = 16, /* takes away what is there: "delete" */
    WORD_PHRASE = 32,   /* of words_phrase() alone */
};
struct word {
    uint32_t stem;
    uint32_t marks;
};
struct word_other {
    uint32_t stem;
    float strength; /* below 1, which is what the word itself has */
};

/* At most `max` words of a text.  "HTTPServer_v2" is http, server, httpserver, v2: pieces of a run
 * are followed by the run, for names like GitHub. */
size_t words_cut(struct str text, struct word *ret, size_t max);
struct word words_of(const char *word);
/* The stem of that phrase, or 0 when the two are none. */
uint32_t words_phrase(uint32_t first, uint32_t second);
/* WORD_WEAK, WORD_PARTICLE, WORD_DESTROYS: what depends on the stem alone. */
uint32_t words_marks(uint32_t stem);
/* What stands for it, each once, in any order; at most `max`.  Returns how many. */
size_t words_others(uint32_t stem, struct word_other *ret, size_t max);

#endif
