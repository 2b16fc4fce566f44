/* SPDX-License-Identifier: Apache-2.0 */
#include "products.h"

#include "analytics/api/table.h"
#include "analytics/store/family.h"
#include "api/api.h"
#include "cli/cli.h"
#include "docs/api/table.h"
#include "docs/cli/commands.h"
#include "docs/store/family.h"
#include "erasure/api/erasures.h"
#include "erasure/store/family.h"
#include "export/api/exports.h"
#include "feeds/api/table.h"
#include "feeds/store/family.h"
#include "holds/api/holds.h"
#include "holds/store/family.h"
#include "replay/api/table.h"
#include "retention/store/family.h"
#include "session/share_api/share_api.h"
#include "session/share_store/family.h"
#include "sinks/api/sinks_api.h"
#include "sinks/store/family.h"
#include "templates/api/templates.h"
#include "templates/store/family.h"

/* The knowledge base, whose server gateway_parts.c starts, and the families of the store. */
void products_register(void)
{
    store_family_add(&sharing_store);
    store_family_add(&docs_store);
    store_family_add(&feeds_store);
    store_family_add(&templates_store);
    store_family_add(&holds_store);
    store_family_add(&sinks_store);
    store_family_add(&retention_store);
    store_family_add(&erasure_store);
    store_family_add(&analytics_store);
    api_add(&docs_api);
    api_add(&templates_api);
    api_add(&holds_api);
    api_add(&erasures_api);
    api_add(&sinks_api);
    api_add(&events_api);
    api_add(&analytics_api);
    api_add(&exports_api);
    api_add(&replay_api);
    api_add(&share_api);
    cli_add(docs_commands, "audit");
}
