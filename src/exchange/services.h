/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of Holdfast that an exchange uses.  The gateway owns them and fills this struct once, at
 * start.  The header names the parts only; a user of one includes the header of that part. */
#ifndef HOLDFAST_EXCHANGE_SERVICES_H
#define HOLDFAST_EXCHANGE_SERVICES_H

#include "base/list.h"
#include "io/deadline.h"

/* One per process. */
struct services {
    struct loop *loop;
    struct front *front; /* has the configuration, the identities and the quotas */
    struct lanes *lanes;
    struct sessions *sessions;
    struct registry *registry;
    struct keyring *keyring;
    struct secrets *secrets;
    struct upstreams *upstreams;
    struct pins *pins;
    struct audit *audit;
    struct calls *calls;
    struct traces *traces; /* NULL: none are made here */
    struct undelivered *undelivered;
    struct streams *streams;
    struct hub *hub;
    struct deadline_class slow_calls; /* timeout after which an answer counts as slow */
    struct pipes *pipes;
    struct sse2024 *sse2024;
    struct deadline_class quiet; /* silence after which a stream sends a keep-alive */
    struct hmac_key *state_key;
    struct hmac_key *context_key; /* for profile_context.h */
    struct list before_call;      /* struct exchange: exchanges whose call has not started */
};

#endif
