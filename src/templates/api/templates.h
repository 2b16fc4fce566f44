/* SPDX-License-Identifier: Apache-2.0 */
/* /templates: a part of REST (api/api.h). */
#ifndef HOLDFAST_TEMPLATES_API_TEMPLATES_H
#define HOLDFAST_TEMPLATES_API_TEMPLATES_H

#include "api/api.h"

extern const struct api_part templates_api; /* table.c; for api_add() */

/* list.c */
void api_list_templates(struct api_call *c);
void api_list_template_versions(struct api_call *c);
/* one.c */
void api_get_template(struct api_call *c);
void api_put_template(struct api_call *c);
void api_remove_template(struct api_call *c);

#endif
