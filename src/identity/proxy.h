/* SPDX-License-Identifier: Apache-2.0 */
/* Proxies in front of us.  What a request says about where it came from (X-Forwarded-For, -Proto,
 * -Host) is believed only from those that the configuration trusts (threats H20). */
#ifndef HOLDFAST_IDENTITY_PROXY_H
#define HOLDFAST_IDENTITY_PROXY_H

#include "base/arena.h"
#include "config/config.h"
#include "http/server.h"

bool peer_is_trusted_proxy(const struct config *c, const struct http_request *r);
/* The address of the client itself, without a port: the last one before the proxies that are
 * trusted.  "unix" on the control socket; "unknown" when a trusted proxy tells one that is no
 * address, or there are more than 32 trusted ones. */
struct str client_address(const struct config *c, const struct http_request *r, struct arena *mem);
/* The network of an address, as text: /24 of IPv4, /64 of IPv6.  Other texts stay as they are. */
struct str address_network(struct str address, struct arena *mem);
/* A proxy, trusted or not, says that it speaks for a client on another machine: by an address, or
 * by a Host that is not a loopback name.  For what is open to this machine alone; no proof. */
bool client_is_elsewhere(const struct config *c, const struct http_request *r);
bool client_is_tls(const struct config *c, const struct http_request *r);
/* Host and port as the client wrote them. */
struct str client_host(const struct config *c, const struct http_request *r);

#endif
