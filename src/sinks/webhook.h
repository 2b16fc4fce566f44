/* SPDX-License-Identifier: Apache-2.0 */
/* The signing key of a webhook: "whsec_" and the key in base64, or the key itself. */
#ifndef HOLDFAST_SINKS_WEBHOOK_H
#define HOLDFAST_SINKS_WEBHOOK_H

#include "base/error.h"
#include "base/str.h"

/* ERR_CONFIG: it is not base64 behind "whsec_", or the key is short. */
must_check bool webhook_secret_check(struct str secret, struct error *err);

#endif
