/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that words.c makes its index from; included only by words*.c. */
#ifndef HOLDFAST_PROFILE_WORDS_TABLE_H
#define HOLDFAST_PROFILE_WORDS_TABLE_H

#include "base/base.h"

enum words_kind {
    WORDS_FORM,    /* one word in several forms */
    WORDS_SAME,    /* synonyms of each other */
    WORDS_NEAR,    /* looser synonyms */
    WORDS_IMPLIED, /* the first words imply the second, not the other way round */
    WORDS_KINDS
};
struct words_row {
    enum words_kind kind;
    const char *words;   /* separated by spaces; "look+up" is a phrase */
    const char *implied; /* NULL unless WORDS_IMPLIED */
};

extern const struct words_row words_deeds[], words_things[], words_forms[];
extern const size_t words_n_deeds, words_n_things, words_n_forms;

extern const char *const words_irregular[][2]; /* {form, word} */
extern const size_t words_n_irregular;

/* Separated by spaces. */
extern const char words_idle[], words_weak[], words_asking[], words_particles[], words_destroying[];

#endif
