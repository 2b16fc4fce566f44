/* SPDX-License-Identifier: Apache-2.0 */
/* One connection for each request, because commands are short. */
#include "cli/remote.h"

#include "base/clock.h"
#include "http/client.h"
#include "io/address.h"
#include "io/wire.h"

#include <stdio.h>
#include <stdlib.h>

struct remote {
    char name[256], host[300]; /* without brackets; "host:port" */
    struct wire_target target;
    struct tls_context *tls;
};

bool remote_open(struct str url, const char *ca_file, struct remote **ret, struct error *err)
{
    struct tls_context *tls = NULL;
    struct http_url parts;

    if (!http_url_parse(url, &parts, err)) {
        err->code = ERR_USAGE;
        return error_wrap(err, "--url");
    }
    if (parts.target.n != 1 || parts.host.n >= sizeof(((struct remote *)0)->name))
        return error_set(err, ERR_USAGE,
                         "--url takes the address of Holdfast without a path, such as "
                         "https://holdfast.example:4653");
    if (ca_file && !parts.is_tls)
        return error_set(err, ERR_USAGE, "--ca needs a --url that begins with https://");
    if (parts.is_tls && !tls_client_new(ca_file, &tls, err))
        return false;
    if (tls)
        tls_client_hints(tls, "give --ca FILE or set SSL_CERT_FILE", "--url");
    struct remote *r = xcalloc(1, sizeof(*r));
    struct str name = parts.host;
    snprintf(r->host, sizeof(r->host), "%.*s:%u", STR_ARG(name), parts.port);
    if (name.n > 2 && name.p[0] == '[')
        name = str_n(name.p + 1, name.n - 2);
    snprintf(r->name, sizeof(r->name), "%.*s", STR_ARG(name));
    r->tls = tls;
    r->target = (struct wire_target){.host = r->name, .port = parts.port, .tls = tls};
    *ret = r;
    return true;
}

void remote_close(struct remote *r)
{
    if (!r)
        return;
    tls_free(r->tls);
    free(r);
}

const char *remote_host(const struct remote *r)
{
    return r->host;
}

bool remote_is_tls(const struct remote *r)
{
    return r->tls != NULL;
}

bool remote_is_clear(const struct remote *r)
{
    struct conn_address address;
    struct error err;

    return !r->tls &&
           !(address_parse(str_of(r->host), &address, &err) && address_is_loopback(&address));
}

/* The wire's errors begin where the address ends. */
static bool not_reached(const struct remote *r, struct error *err)
{
    char what[340];

    snprintf(what, sizeof(what), "cannot reach Holdfast at %s", r->host);
    if (err->code == ERR_TIMEOUT)
        err->code = ERR_UNREACHABLE;
    return error_wrap(err, what);
}

static bool read_all(struct wire *w, int64_t until_us, struct buf *in, struct error *err)
{
    char scratch[65536];
    size_t n;

    while (wire_read(w, scratch, sizeof(scratch), until_us, &n, err))
        if (!buf_try_add(in, scratch, n))
            return error_set(err, ERR_TOO_LARGE, "the answer is larger than 64 MiB; ask for less");
    return wire_has_ended(w);
}

bool remote_exchange(struct remote *r, struct str request, int64_t deadline_ms, struct buf *in,
                     struct error *err)
{
    int64_t until_us = wire_now_us() + deadline_ms * 1000;
    struct wire *w;

    if (!wire_open(&r->target, until_us, &w, err))
        return not_reached(r, err);
    bool ok = wire_write(w, request, until_us, err) && read_all(w, until_us, in, err);
    wire_close(w);
    return ok || err->code == ERR_TOO_LARGE ? ok : not_reached(r, err);
}

bool remote_stream(struct remote *r, struct str request, int64_t idle_ms,
                   bool (*take)(void *arg, struct str bytes, struct error *err), void *arg,
                   struct error *err)
{
    char scratch[65536];
    struct wire *w;
    size_t n;

    if (!wire_open(&r->target, wire_now_us() + idle_ms * 1000, &w, err))
        return not_reached(r, err);
    bool ok = wire_write(w, request, wire_now_us() + idle_ms * 1000, err), is_taken = true;
    while (ok && is_taken &&
           (ok = wire_read(w, scratch, sizeof(scratch), wire_now_us() + idle_ms * 1000, &n, err)))
        is_taken = take(arg, str_n(scratch, n), err);
    ok = is_taken && (ok || wire_has_ended(w));
    wire_close(w);
    return ok || !is_taken ? ok : not_reached(r, err);
}
