/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the certificate and of the way in through a proxy. */
#include "cli/doctor.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#define DAYS_LOW 21

/* "https://mcp.example:8443/x" → "mcp.example", NUL-terminated; absent: not a URL. */
static struct str host_of(struct str url, struct arena *mem)
{
    const char *at = url.n ? strstr(url.p, "://") : NULL;

    if (!at)
        return STR_NONE;
    at += 3;
    return arena_dup(mem, str_n(at, strcspn(at, "/:?#")));
}

static void say_expiry(struct doctor *d, const X509 *cert)
{
    int days = 0, seconds = 0;

    if (!ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)))
        doctor_say(d, DOCTOR_FAILURE, "replace the certificate", "its expiry cannot be read");
    else if (days < 0 || (days == 0 && seconds < 0))
        doctor_say(d, DOCTOR_FAILURE, "renew it, then reload Holdfast (SIGHUP)",
                   "the certificate has expired");
    else if (days < DAYS_LOW)
        doctor_say(d, DOCTOR_WARNING, "renew it, then reload Holdfast (SIGHUP)",
                   "the certificate expires in %d days", days);
    else
        doctor_say(d, DOCTOR_OK, NULL, "the certificate is valid for %d more days", days);
}

static void say_name(struct doctor *d, X509 *cert)
{
    struct str host = host_of(d->config->public_url, d->mem);

    if (!host.n)
        return;
    if (X509_check_host(cert, host.p, host.n, 0, NULL) == 1 ||
        X509_check_ip_asc(cert, host.p, 0) == 1)
        doctor_say(d, DOCTOR_OK, NULL, "the certificate is for %.*s", STR_ARG(host));
    else
        doctor_say(d, DOCTOR_FAILURE, "get a certificate with this name, or correct public_url",
                   "the certificate is not for %.*s, the host of public_url", STR_ARG(host));
}

void doctor_certificate(struct doctor *d)
{
    FILE *file;
    X509 *cert;

    if (!d->config)
        return;
    if (!d->config->tls_cert.p) {
        doctor_say(d, DOCTOR_OK, NULL, "Holdfast itself has no certificate (tls.cert)");
        return;
    }
    file = fopen(d->config->tls_cert.p, "re");
    cert = file ? PEM_read_X509(file, NULL, NULL, NULL) : NULL;
    if (file)
        fclose(file);
    if (!cert) {
        doctor_say(d, DOCTOR_FAILURE, "set tls.cert to a readable PEM file",
                   "%.*s does not hold a certificate that can be read",
                   STR_ARG(d->config->tls_cert));
        return;
    }
    say_expiry(d, cert);
    say_name(d, cert);
    X509_free(cert);
}

/* Whether the newest sessions all have an address of trusted_proxies, which means that the proxy
 * does not name its clients. */
static bool sees_only_proxies(struct doctor *d, size_t *ret_n)
{
    struct error ignored;
    struct js_doc doc;
    struct str json;
    size_t n = 0, same = 0;

    if (!d->source.control || d->source.local ||
        !control_get(d->source.control, STR("/api/v1/sessions?limit=100"), d->mem, &json,
                     &ignored) ||
        !source_parse(json, d->mem, &doc, &ignored))
        return false;
    const struct js_node *list = js_get(&doc, js_root(&doc), STR("sessions"));
    for (const struct js_node *s = js_type_is(list, JS_ARRAY) ? js_first(&doc, list) : NULL; s;
         s = js_next(&doc, list, s)) {
        struct str from =
            source_text(&doc, js_get(&doc, s, STR("connection_metadata")), "ip_address", d->mem);
        bool found = false;
        for (size_t i = 0; i < d->config->n_trusted_proxies; i++)
            found = found || str_eq(d->config->trusted_proxies[i], from);
        n += from.n > 0;
        same += found;
    }
    *ret_n = n;
    return n && n == same;
}

/* X-Forwarded-For: without it all clients have one address in limits, throttles and the audit. */
static void say_forwarded(struct doctor *d)
{
    const struct config *c = d->config;
    size_t n = 0;

    if (!c->n_trusted_proxies && c->public_url.n && str_starts(c->public_url, STR("https:")) &&
        !c->tls_cert.p)
        doctor_say(d, DOCTOR_WARNING,
                   "add its address to trusted_proxies, and let it send X-Forwarded-For (nginx: "
                   "proxy_set_header X-Forwarded-For $remote_addr;)",
                   "public_url is https without tls.cert, so a proxy is in front, but "
                   "trusted_proxies is empty: all clients count as one address");
    else if (c->n_trusted_proxies && sees_only_proxies(d, &n))
        doctor_say(d, DOCTOR_WARNING,
                   "let it send X-Forwarded-For (nginx: proxy_set_header X-Forwarded-For "
                   "$remote_addr;)",
                   "all %zu live sessions have the address of a trusted proxy", n);
    else if (c->n_trusted_proxies)
        doctor_say(d, DOCTOR_OK, NULL, "X-Forwarded-For is taken from %zu trusted address%s",
                   c->n_trusted_proxies, c->n_trusted_proxies == 1 ? "" : "es");
}

static void say_public_url(struct doctor *d)
{
    struct control *control = NULL;
    struct error err;
    struct str json;

    if (!control_open_url(d->config->public_url, NULL, &control, &err)) {
        doctor_say(d, DOCTOR_WARNING, "try it with a browser or curl: GET /healthz",
                   "public_url was not tried: %s", err.text);
        return;
    }
    control_set_deadline(control, 5000);
    if (control_get(control, STR("/healthz"), d->mem, &json, &err))
        doctor_say(d, DOCTOR_OK, NULL, "%.*s answers", STR_ARG(d->config->public_url));
    else
        doctor_say(d, DOCTOR_FAILURE,
                   "check that the proxy runs, leads to this Holdfast, and passes the Host on "
                   "(nginx: proxy_set_header Host $host;)",
                   "%.*s/healthz: %s", STR_ARG(d->config->public_url), err.text);
    control_close(control);
}

void doctor_proxy(struct doctor *d)
{
    if (!d->config)
        return;
    if (d->config->public_url.p)
        say_public_url(d);
    else if (d->config->n_trusted_proxies)
        doctor_say(d, DOCTOR_WARNING,
                   "set \"public_url\" to the address that clients use, such as "
                   "\"https://mcp.example.com\"",
                   "trusted_proxies is set without public_url, so requests with the Host of the "
                   "proxy are refused");
    else
        doctor_say(d, DOCTOR_OK, NULL, "no proxy is configured (public_url, trusted_proxies)");
    say_forwarded(d);
}
