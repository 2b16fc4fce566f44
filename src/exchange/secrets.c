/* SPDX-License-Identifier: Apache-2.0 */
/* The secrets of the request's session (session/secrets.h): its stored credentials and context
 * values.  The audit replaces them by their names in everything that is recorded about the request,
 * whichever server gets it.  A session without such secrets costs a look at two pointers. */
#include "exchange/exchange.h"

struct session_secrets {
    struct secrets_job job;
    bool is_done;
};

static void on_found(struct secrets_job *j)
{
    struct exchange *x = j->user;

    x->session_secrets->is_done = true;
    exchange_resume(x);
}

/* Before the session step the transport knows its session. */
static const struct session *session_of(const struct exchange *x)
{
    return x->session ? x->session : x->transport ? x->transport->session : NULL;
}

bool exchange_find_secrets(struct exchange *x, bool *ret_ok)
{
    const struct session *s = session_of(x);
    struct session_secrets *found = x->session_secrets;

    *ret_ok = true;
    if (!found && (!s || (!s->sealed_auth.p && !s->context)))
        return true;
    if (!found) {
        struct secrets_texts texts = secrets_texts_of(s);
        found = x->session_secrets = arena_new_of(x->mem, struct session_secrets);
        found->job.done = on_found;
        found->job.user = x;
        found->is_done = secrets_find(x->sv->secrets, &texts, &found->job);
    }
    *ret_ok = found->is_done && found->job.ok;
    return found->is_done;
}

enum step_result exchange_know_secrets(struct exchange *x)
{
    bool ok;

    if (!exchange_find_secrets(x, &ok))
        return STEP_WAIT;
    return ok ? STEP_NEXT : exchange_fail(x, &x->session_secrets->job.err);
}

struct known *exchange_session_secrets(const struct exchange *x)
{
    return x->session_secrets ? x->session_secrets->job.known : NULL;
}

void exchange_release_secrets(struct exchange *x)
{
    known_unref(exchange_session_secrets(x));
}
