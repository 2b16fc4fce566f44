/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted of calls: how long servers take, what was executed, sessions they begin and end.
 */
#ifndef HOLDFAST_CALL_CALL_MEASURE_H
#define HOLDFAST_CALL_CALL_MEASURE_H

#include "call/call.h"

/* Its rows are committed (the session's state is still that before), or err says why not. */
void call_measure_begun(const struct call *c, const struct store_op *ops, const struct error *err);
/* The answer or the error is there: sets c->outcome. */
void call_measure_answered(struct call *c);

#endif
