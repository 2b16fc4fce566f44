/* SPDX-License-Identifier: Apache-2.0 */
#include "products.h"

#include "api/api.h"
#include "cli/cli.h"
#include "docs/api/table.h"
#include "docs/cli/commands.h"
#include "docs/store/family.h"

/* The knowledge base.  gateway_parts.c starts its server. */
void products_register(void)
{
    store_family_add(&docs_store);
    api_add(&docs_api);
    cli_add(docs_commands, "audit");
}
