/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the operations on live events. */
#ifndef HOLDFAST_FEEDS_API_IMPL_H
#define HOLDFAST_FEEDS_API_IMPL_H

#include "api/api.h"

/* sse.c */
void events_sse_open(struct api_call *c);

#endif
