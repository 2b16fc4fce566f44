/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the OpenAPI document: openapi.c writes the frame and the operations, openapi_answers.c
 * the responses, openapi_schemas.c the schemas, openapi_examples.c the examples.  Each function
 * writes one value, or the members of an open object. */
#ifndef HOLDFAST_API_OPENAPI_IMPL_H
#define HOLDFAST_API_OPENAPI_IMPL_H

#include "json/write.h"
#include "api/api.h"

/* The health endpoints, which are outside /api/v1 and have no row in its table. */
extern const struct api_operation openapi_health[];
extern const size_t openapi_n_health;
static inline bool openapi_is_health(const struct api_operation *op)
{
    return !op->run;
}

void openapi_answers(struct js_writer *w, const struct api_operation *op); /* an object */
void openapi_common_answers(struct js_writer *w);                          /* members */
void openapi_headers(struct js_writer *w);                                 /* members */

void openapi_schemas(struct js_writer *w); /* members */
void openapi_param_schema(struct js_writer *w, const struct api_param *p);
void openapi_ref(struct js_writer *w, const char *group, const char *name); /* {"$ref": …} */
const struct api_schema *openapi_schema_named(const char *name);            /* NULL: unknown */

void openapi_answer_example(struct js_writer *w, const struct api_schema *schema);
void openapi_body_example(struct js_writer *w, const struct api_body *body);
void openapi_problem_example(struct js_writer *w, int status, const char *detail, bool is_once);

#endif
