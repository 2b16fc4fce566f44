/* SPDX-License-Identifier: Apache-2.0 */
/* The page at `/`. */
#ifndef HOLDFAST_API_LANDING_H
#define HOLDFAST_API_LANDING_H

#include "base/buf.h"
#include "front/front.h"

admitted_fn landing_page, landing_favicon;

/* For tests. */
bool landing_wants_html(
    struct str accept); /* whether the client names HTML itself; not for any type */
void landing_escape(struct buf *out, struct str text); /* as text or attribute of HTML */

#endif
