/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_SERVERS_SAMPLE_H
#define HOLDFAST_SERVERS_SAMPLE_H

#include "upstream/builtin.h"

extern const struct builtin server_sample;

#endif
