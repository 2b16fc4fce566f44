/* SPDX-License-Identifier: Apache-2.0 */
/* A suggestion as REST shows it. */
#ifndef HOLDFAST_DOCS_API_SUGGESTION_H
#define HOLDFAST_DOCS_API_SUGGESTION_H

#include "docs/critic/critic.h"
#include "json/write.h"

#define SUGGESTIONS_SHOWN 1000                /* of one document */
#define SUGGESTIONS_BYTES (16u * 1024 * 1024) /* of markup shown per document */

/* Writes an array of the first suggestions, up to both limits above.  An id is a digest of the
 * suggestion's markup; suggestions with the same markup are numbered. */
void suggestions_write(struct js_writer *w, const struct critic_suggestion *list, size_t n);

#endif
