/* SPDX-License-Identifier: Apache-2.0 */
/* The first half of `holdfast up`, which `holdfast start` shares. */
#ifndef HOLDFAST_CLI_UP_H
#define HOLDFAST_CLI_UP_H

#include "cli/cli.h"
#include "gateway.h"

/* By --log-format, --log-level and their variables; `json` as for log_setup(), if no format is
 * given. */
must_check bool up_set_log(const struct cli *cli, int json, struct error *err);
/* By --config, --listen, the socket of `service` (NULL: none), --data and the environment.  Opens
 * no port, and creates nothing but the secrets that it asks for on a terminal.  On success the
 * caller owns ret->config. */
must_check bool up_prepare(struct cli *cli, struct service *service, struct gateway_options *ret,
                           struct error *err);

#endif
