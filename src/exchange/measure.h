/* SPDX-License-Identifier: Apache-2.0 */
/* Counting exchanges: requests by method and status class, durations. */
#ifndef HOLDFAST_EXCHANGE_MEASURE_H
#define HOLDFAST_EXCHANGE_MEASURE_H

struct exchange;
void measure_exchange(const struct exchange *x);

#endif
