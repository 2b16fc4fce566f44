/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts for calls of held tools and refused names (upstream/pins.h).  Called only for guarded
 * servers, so that other servers cost one flag check. */
#include "exchange/exchange.h"

#include "upstream/pins.h"

struct str exchange_task_text(struct exchange *x, const struct upstream *up, struct str tool)
{
    return arena_printf(
        x->mem,
        "The tool '%.*s' of '%.*s' runs only as a task, and Holdfast does not carry "
        "tasks; use another tool, or connect to the server without Holdfast.",
        STR_ARG(str_cut(tool, 128)), STR_ARG(upstream_name(up)));
}

enum step_result exchange_check_pin(struct exchange *x)
{
    enum pin_verdict verdict;

    if (x->method->service != SERVE_CALL)
        return STEP_NEXT;
    verdict = pins_check(x->sv->pins, x->up, x->tool, x->item != NULL);
    if (verdict == PIN_FREE)
        return STEP_NEXT;
    if (verdict == PIN_UNKNOWN)
        return exchange_unknown_tool(x);
    return exchange_tool_error(x, pins_held_text(verdict, upstream_name(x->up), x->tool, x->mem).p);
}
