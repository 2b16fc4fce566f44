/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast sessions watch: the list, as it changes. */
#ifndef HOLDFAST_CLI_SESSIONS_WATCH_H
#define HOLDFAST_CLI_SESSIONS_WATCH_H

#include "cli/sessions_list.h"

struct sessions_watch {
    struct control *control;
    const struct sessions_ask *ask;
    bool json, utc, colour;
    size_t width; /* of the terminal, whose screen is drawn again; 0: changed rows are printed */
};
/* Returns true when stdout takes no more data; otherwise it goes on until a signal or an error. */
must_check bool sessions_watch(const struct sessions_watch *w, struct error *err);

#endif
