/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the operations on templates. */
#ifndef HOLDFAST_TEMPLATES_API_IMPL_H
#define HOLDFAST_TEMPLATES_API_IMPL_H

#include "api/job.h"
#include "templates/api/templates.h"
#include "templates/store/rows.h"

#include "json/write.h"

/* one.c */
/* Reads {name} into *ret, in c->mem.  false: the refusal was sent. */
must_check bool template_read_name(struct api_call *c, struct str *ret);
/* Writes the row as an object; with its spec if it has one. */
void template_write(struct js_writer *w, const struct template_row *row);

#endif
