/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted of calls: how long servers take, and what was executed. */
#ifndef HOLDFAST_CALL_CALL_MEASURE_H
#define HOLDFAST_CALL_CALL_MEASURE_H

#include "call/call.h"

/* The answer or the error is there: sets c->outcome. */
void call_measure_answered(struct call *c);

#endif
