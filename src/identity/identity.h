/* SPDX-License-Identifier: Apache-2.0 */
/* Who is calling.  Until keys and tokens exist there is one principal: whoever reaches the loopback
 * listener or the control socket.  A credential that nobody issued is refused, not ignored. */
#ifndef HOLDFAST_IDENTITY_IDENTITY_H
#define HOLDFAST_IDENTITY_IDENTITY_H

#include "base/error.h"
#include "base/principal.h"
#include "config/config.h"
#include "http/server.h"

must_check bool identify(const struct config *c, const struct http_request *r,
                         struct principal *ret, struct error *err);
/* DNS rebinding (threats H10): the Host must be a name of ours, an Origin, when present, one we
 * allow. */
bool host_is_allowed(const struct config *c, struct str host);
bool origin_is_allowed(const struct config *c, struct str origin);

#endif
