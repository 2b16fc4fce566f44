/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast docs review: suggestions one by one, decided with single keys. */
#ifndef HOLDFAST_DOCS_CLI_REVIEW_H
#define HOLDFAST_DOCS_CLI_REVIEW_H

#include "docs/cli/client.h"

/* Runs until the person quits, or nothing is left to decide or undo; returns the exit status.
 * `where` as in docs_client_suggestions(). */
int docs_review(struct cli *cli, struct docs_client *c, struct str where);

#endif
