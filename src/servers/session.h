/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_SERVERS_SESSION_H
#define HOLDFAST_SERVERS_SESSION_H

#include "upstream/builtin.h"

/* Its `arg` is a struct registry. */
extern const struct builtin server_session;

#endif
