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

    if (!d->config || !d->config->tls_cert.p)
        return;
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

void doctor_proxy(struct doctor *d)
{
    struct control *control = NULL;
    struct error err;
    struct str json;

    if (!d->config || !d->config->public_url.p)
        return;
    if (!control_open_url(d->config->public_url, &control, &err)) {
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
