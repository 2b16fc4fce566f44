/* SPDX-License-Identifier: Apache-2.0 */
/* The address of a syslog server: tls://HOST:PORT, or tcp://HOST:PORT on this machine. */
#ifndef HOLDFAST_SINKS_SYSLOG_H
#define HOLDFAST_SINKS_SYSLOG_H

#include "base/error.h"
#include "base/str.h"

must_check bool syslog_url_parse(struct str url, struct str *ret_host, uint16_t *ret_port);
/* ERR_CONFIG: another machine without TLS. */
must_check bool syslog_url_check(struct str url, struct error *err);

#endif
