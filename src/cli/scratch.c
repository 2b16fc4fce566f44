/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/scratch.h"

#include "config/datadir.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

static bool make_directory(const char *top, const char *purpose, char ret[SCRATCH_TEXT],
                           struct error *err)
{
    snprintf(ret, SCRATCH_TEXT, "%.200s/holdfast-%.20s-XXXXXX", top, purpose);
    if (mkdtemp(ret))
        return true;
    ret[0] = 0;
    return error_sys(err, ERR_INTERNAL, errno, "cannot make a temporary directory in %s", top);
}

bool scratch_make(const char *purpose, struct arena *mem, char ret[SCRATCH_TEXT], struct error *err)
{
    const char *top = getenv("TMPDIR");
    struct str ignored_path;
    struct error ignored;

    if (top && *top &&
        datadir_socket(arena_printf(mem, "%s/holdfast-%s-XXXXXX", top, purpose), mem, &ignored_path,
                       &ignored))
        return make_directory(top, purpose, ret, err);
    return make_directory("/tmp", purpose, ret, err);
}

static int remove_one(const char *path, const struct stat *st unused_arg, int kind unused_arg,
                      struct FTW *walk unused_arg)
{
    return remove(path);
}

void scratch_remove(const char *dir)
{
    if (dir[0])
        nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
