/* SPDX-License-Identifier: Apache-2.0 */
/* What clock.c and clock_life.c share. */
#ifndef HOLDFAST_BASE_CLOCK_IMPL_H
#define HOLDFAST_BASE_CLOCK_IMPL_H

void clock_life_begin(void); /* life time is the wall clock's, from now on */

#endif
