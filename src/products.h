/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the operations and commands of the products in this program to the tables of api and cli.
 * Called once at the start of a process, before either table is used; a second call changes
 * nothing. */
#ifndef HOLDFAST_PRODUCTS_H
#define HOLDFAST_PRODUCTS_H

void products_register(void);

#endif
