/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by clock.c and clock_life.c. */
#ifndef HOLDFAST_BASE_CLOCK_IMPL_H
#define HOLDFAST_BASE_CLOCK_IMPL_H

void clock_life_begin(void); /* restarts life time at the wall clock */

#endif
