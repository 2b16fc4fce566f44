/* SPDX-License-Identifier: Apache-2.0 */
/* The question: which credential a request carries, and what is known of it. */
#include "identity/identity.h"

#include <stdlib.h>
#include <unistd.h>

struct identity {
    struct identity_config config;
    struct config *c;
};

static const struct principal local_admin = {
    .tenant = {"default", 7},
    .owner = {"local", 5},
    .role = ROLE_ADMIN,
};

struct identity *identity_new(const struct identity_config *config, struct config *c)
{
    struct identity *id = xcalloc(1, sizeof(*id));
    id->config = *config;
    id->c = config_ref(c);
    return id;
}

void identity_apply(struct identity *id, struct config *c)
{
    config_unref(id->c);
    id->c = config_ref(c);
}

void identity_stop(struct identity *id unused_arg)
{
}

void identity_free(struct identity *id)
{
    if (!id)
        return;
    config_unref(id->c);
    free(id);
}

bool identify(struct identity *id unused_arg, struct identify *q)
{
    list_init(&q->waiting);
    q->ok = false;
    q->had_credential = q->path_key.p || http_header_get(q->head, STR("authorization")).p ||
                        http_header_get(q->head, STR("x-api-key")).p;
    if (q->is_unix && q->peer_uid != geteuid() && q->peer_uid != 0) {
        error_set(
            &q->err, ERR_UNAUTHENTICATED,
            "the control socket is for the user who runs Holdfast; run the command as that user");
    } else if (q->had_credential) {
        error_set(&q->err, ERR_UNAUTHENTICATED,
                  "this credential is not known here; leave the Authorization or X-API-Key header "
                  "out, as a loopback listener needs none");
    } else {
        q->who = local_admin;
        q->ok = true;
    }
    return true;
}

void identify_cancel(struct identify *q)
{
    list_remove(&q->waiting);
}

void identity_watch(struct identity *id unused_arg, struct identity_watch *w,
                    const struct principal *who unused_arg)
{
    list_init(&w->node);
}

void identity_unwatch(struct identity_watch *w)
{
    if (w->node.next)
        list_remove(&w->node);
}

void identity_revoked(struct identity *id unused_arg, struct str credential unused_arg)
{
}

struct str identity_challenge(const struct config *c unused_arg,
                              const struct http_request *r unused_arg,
                              bool had_credential unused_arg)
{
    return STR("WWW-Authenticate: Bearer\r\n");
}
