/* SPDX-License-Identifier: Apache-2.0 */
/* The operations under /api/v1/sessions/{id}/replay, for api_add(). */
#ifndef HOLDFAST_REPLAY_API_TABLE_H
#define HOLDFAST_REPLAY_API_TABLE_H

#include "api/api.h"

extern const struct api_part replay_api;

void api_replay_session(struct api_call *c); /* replay.c */
extern const struct api_body body_replay;

/* serve.c */
struct serve_options {
    int64_t ttl_ms;
    const struct str *only; /* as in struct replay_options */
    size_t n_only;
};
void api_serve_replay(struct api_call *c);
void api_get_served_replay(struct api_call *c);
void api_end_served_replay(struct api_call *c);
extern const struct api_body body_serve;

#endif
