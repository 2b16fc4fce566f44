/* SPDX-License-Identifier: Apache-2.0 */
/* POST /api/v1/sessions/{id}/replay, for api_add(). */
#ifndef HOLDFAST_REPLAY_API_TABLE_H
#define HOLDFAST_REPLAY_API_TABLE_H

#include "api/api.h"

extern const struct api_part replay_api;

void api_replay_session(struct api_call *c); /* replay.c */
extern const struct api_body body_replay;

#endif
