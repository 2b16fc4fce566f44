/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of JSON by value, exactly: without a float, so that 9007199254740993 stays what it is. */
#ifndef HOLDFAST_REPLAY_NUMBER_H
#define HOLDFAST_REPLAY_NUMBER_H

#include "base/buf.h"

/* Appends the one spelling of this number (valid JSON): its digits without zeros at either end, and
 * the power of ten: "-12e3", "0". */
void number_canonical(struct str number, struct buf *out);

#endif
