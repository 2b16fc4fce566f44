/* SPDX-License-Identifier: Apache-2.0 */
/* Documents in the REST interface: their operations, and their members of /readyz. */
#ifndef HOLDFAST_DOCS_API_TABLE_H
#define HOLDFAST_DOCS_API_TABLE_H

#include "api/api.h"

extern const struct api_part docs_api; /* for api_add() */

/* list.c */
void api_list_documents(struct api_call *c);
void api_list_suggestions(struct api_call *c);
/* files.c */
void api_get_document(struct api_call *c);
void api_put_document(struct api_call *c);
/* history.c */
void api_list_revisions(struct api_call *c);
void api_get_revision(struct api_call *c);
void api_restore_document(struct api_call *c);
/* move.c */
void api_move_document(struct api_call *c);
/* apply.c */
void api_apply_suggestions(struct api_call *c);
/* ready.c */
void docs_write_ready(struct api_services *sv, struct js_writer *w);

#endif
