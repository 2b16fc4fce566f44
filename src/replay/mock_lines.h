/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an exported session (export/line.h) into a mock, line by line as the bytes come.  The chain is
 * not checked: who tests with a recording may change it. */
#ifndef HOLDFAST_REPLAY_MOCK_LINES_H
#define HOLDFAST_REPLAY_MOCK_LINES_H

#include "base/buf.h"
#include "replay/mock.h"

struct mock_lines {
    struct mock *mock;      /* gets the calls */
    const struct str *only; /* patterns of server__tool; none: every call */
    size_t n_only;
    struct buf line; /* one that is not whole yet */
    int64_t number;  /* of the line, from 1 */
    bool has_session, has_end;
    char session[320]; /* its session_id */
};
void mock_lines_begin(struct mock_lines *l, struct mock *mock);
void mock_lines_release(struct mock_lines *l);
/* ERR_BAD_INPUT: this is no exported session. */
must_check bool mock_lines_take(struct mock_lines *l, struct str bytes, struct error *err);
/* After the last byte: whether all lines have come. */
must_check bool mock_lines_end(struct mock_lines *l, struct error *err);

#endif
