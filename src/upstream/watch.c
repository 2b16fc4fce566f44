/* SPDX-License-Identifier: Apache-2.0 */
/* Who listens for changes of which server's lists.  Counts are kept by name, not by upstream, so a
 * reload that replaces a server keeps its listeners. */
#include "upstream/upstream_impl.h"

#include <assert.h>
#include <stdlib.h>

struct watch {
    struct str name; /* behind it */
    unsigned listeners;
};

void watches_init(struct upstreams *s)
{
    map_init(&s->watches);
    s->watches_all = 0;
}

void watches_release(struct upstreams *s)
{
    struct str name;
    void *value;

    for (size_t at = 0; map_next(&s->watches, &at, &name, &value);)
        free(value);
    map_release(&s->watches);
}

static struct watch *watch_of(struct upstreams *s, struct str name)
{
    struct watch *w = map_get(&s->watches, name);
    if (w)
        return w;
    w = xcalloc(1, sizeof(*w) + name.n);
    w->name = str_n(memcpy(w + 1, name.p, name.n), name.n);
    map_put(&s->watches, w->name, w);
    return w;
}

static unsigned counted(unsigned count, int by)
{
    assert(by > 0 || count >= (unsigned)-by);
    return count + (unsigned)by;
}

void upstreams_watch(struct upstreams *s, struct str server, int by)
{
    if (!server.p) {
        s->watches_all = counted(s->watches_all, by);
        return;
    }
    struct watch *w = watch_of(s, server);
    w->listeners = counted(w->listeners, by);
    if (!w->listeners) {
        map_remove(&s->watches, w->name);
        free(w);
    }
}

bool upstream_is_watched(const struct upstream *u)
{
    return u->set->watches_all || map_get(&u->set->watches, u->config->name);
}
