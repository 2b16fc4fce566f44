/* SPDX-License-Identifier: Apache-2.0 */
/* Named fault points.  Compiled in only with -Dfaults=true (the test build); otherwise nothing.
 * HOLDFAST_FAULT="store.commit:3,keeper.fork:1" makes the 3rd and 1st pass of those points fail. */
#ifndef HOLDFAST_BASE_FAULT_H
#define HOLDFAST_BASE_FAULT_H

#include "base/str.h"

#ifdef HOLDFAST_FAULTS
bool fault_hits(const char *point);
void fault_load(const char *spec);
/* Waits while the file POINT exists in the folder HOLDFAST_FAULT_HOLD and `about` contains the
 * file's text.  POINT.held exists while a thread waits.  Do not call it on the loop thread. */
void fault_hold(const char *point, struct str about);
#else
#define fault_hits(point) false
#define fault_load(spec) ((void)(spec))
#define fault_hold(point, about) ((void)(about))
#endif

#endif
