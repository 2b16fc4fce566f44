/* SPDX-License-Identifier: Apache-2.0 */
/* Proxies in front of Holdfast.  X-Forwarded-For, -Proto and -Host are believed only from proxies
 * that the configuration trusts (threats H20). */
#ifndef HOLDFAST_IDENTITY_PROXY_H
#define HOLDFAST_IDENTITY_PROXY_H

#include "base/arena.h"
#include "config/config.h"
#include "http/server.h"

bool peer_is_trusted_proxy(const struct config *c, const struct http_request *r);
/* The address of the client, without a port: the last address before the trusted proxies.  "unix"
 * on the control socket.  "unknown" when a trusted proxy names an invalid address, or after more
 * than 32 trusted proxies. */
struct str client_address(const struct config *c, const struct http_request *r, struct arena *mem);
/* The network of an address as text: /24 for IPv4, /64 for IPv6.  Other texts are returned
 * unchanged. */
struct str address_network(struct str address, struct arena *mem);
/* Whether a proxy, trusted or not, indicates a client on another machine: by X-Forwarded-For,
 * Forwarded, or a Host that is not a loopback name.  A hint, not a proof; used for access that is
 * limited to this machine. */
bool client_is_elsewhere(const struct config *c, const struct http_request *r);
bool client_is_tls(const struct config *c, const struct http_request *r);
/* Host and port as sent by the client. */
struct str client_host(const struct config *c, const struct http_request *r);

#endif
