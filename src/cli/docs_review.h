/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast docs review: suggestions one by one, decided with single keys. */
#ifndef HOLDFAST_CLI_DOCS_REVIEW_H
#define HOLDFAST_CLI_DOCS_REVIEW_H

#include "cli/docs_client.h"

/* Until the person quits or nothing is left; the exit status.  `where` as in
 * docs_client_suggestions(). */
int docs_review(struct cli *cli, struct docs_client *c, struct str where);

#endif
