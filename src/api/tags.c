/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lists of entity tags.  They are split at commas, because our tags contain no commas. */
#include "api/tags.h"

#include "session/session_json.h"

bool tags_have(struct str header, struct str tag)
{
    while (header.p) {
        struct str one = str_trim(str_split(&header, ','));
        if (str_starts(one, STR("W/")))
            one = str_n(one.p + 2, one.n - 2);
        if (str_eq(one, STR("*")) || str_eq(one, tag))
            return true;
    }
    return false;
}

bool tags_match(struct str header, int64_t version, int64_t *ret_version)
{
    while (header.p) {
        struct str one = str_trim(str_split(&header, ','));
        int64_t named;
        if (!str_eq(one, STR("*")) && !(session_tag_version(one, &named) && named == version))
            continue;
        *ret_version = version;
        return true;
    }
    return false;
}
