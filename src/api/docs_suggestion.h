/* SPDX-License-Identifier: Apache-2.0 */
/* A suggestion as REST shows it. */
#ifndef HOLDFAST_API_DOCS_SUGGESTION_H
#define HOLDFAST_API_DOCS_SUGGESTION_H

#include "critic/critic.h"
#include "json/write.h"

#define SUGGESTIONS_SHOWN 1000                /* of one document */
#define SUGGESTIONS_BYTES (16u * 1024 * 1024) /* of markup that is shown of one document */

/* An array of the first of them, as many as are shown.  Ids are of what a suggestion is and stands
 * in; those that are alike in both are numbered. */
void suggestions_write(struct js_writer *w, const struct critic_suggestion *list, size_t n);

#endif
