/* SPDX-License-Identifier: Apache-2.0 */
/* Counts exchanges: requests by method and status class, and durations. */
#ifndef HOLDFAST_EXCHANGE_MEASURE_H
#define HOLDFAST_EXCHANGE_MEASURE_H

struct exchange;
void measure_exchange(const struct exchange *x);

#endif
