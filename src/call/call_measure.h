/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of calls: how long servers take, and what was executed. */
#ifndef HOLDFAST_CALL_CALL_MEASURE_H
#define HOLDFAST_CALL_CALL_MEASURE_H

#include "call/call.h"

/* The call has its answer or its error: sets c->outcome. */
void call_measure_answered(struct call *c);

#endif
