/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/import_files.h"

#include "config/edit.h"
#include "json/read.h"
#include "json/write.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 3

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool import_files_of(const struct client *client, struct arena *mem, struct import_file **ret,
                     size_t *ret_n, struct error *err)
{
    struct import_file *files = arena_zalloc(mem, FILES_MAX * sizeof(*files));
    const char *project = client->project_file;
    char *here = getcwd(NULL, 0);
    struct str own = STR_NONE;
    size_t n = 0;
    bool ok = client_file(client, mem, &own, err);

    if (ok && here && client->projects_key)
        files[n++] = (struct import_file){
            .client = client,
            .path = own,
            .project = arena_dup(mem, str_of(here)),
            .title = arena_printf(mem, "%s, this folder in %s", client->title, client->file)};
    /* In the home directory the project's file may be the user's own. */
    if (ok && here && project && access(project, F_OK) == 0 && !is_same_file(project, own.p))
        files[n++] = (struct import_file){
            .client = client,
            .path = arena_printf(mem, "%s/%s", strcmp(here, "/") == 0 ? "" : here, project),
            .title = arena_printf(mem, "%s, %s", client->title, project)};
    files[n++] =
        (struct import_file){.client = client, .path = own, .title = str_of(client->title)};
    free(here);
    if (ok) {
        *ret = files;
        *ret_n = n;
    }
    return ok;
}

/* The servers of one project as a text of their own; absent: the file has none for it.  A file that
 * cannot be parsed has none either: it is read again as the user's, which reports the mistake. */
static struct str project_servers(const struct import_file *file, struct str text,
                                  struct arena *mem)
{
    const struct js_node *v;
    struct js_doc doc;

    if (str_starts(text, STR("\xef\xbb\xbf")))
        text = str_n(text.p + 3, text.n - 3);
    if (!js_parse(text, &js_limits_config, mem, &doc, NULL))
        return STR_NONE;
    v = js_get(&doc, js_root(&doc), str_of(file->client->projects_key));
    v = js_get(&doc, js_get(&doc, v, file->project), str_of(file->client->key));
    return js_type_is(v, JS_OBJECT) && js_first(&doc, v)
               ? arena_printf(mem, "{\"%s\": %.*s}", file->client->key, STR_ARG(js_raw(&doc, v)))
               : STR_NONE;
}

bool import_file_read(const struct import_file *file, struct arena *mem,
                      struct snippet_server **ret, size_t *ret_n, struct error *err)
{
    struct str servers;
    struct buf text;
    bool exists = false, ok;

    *ret_n = 0;
    buf_init_secret(&text, SIZE_MAX);
    ok = config_edit_read(file->path.p, &text, &exists, err);
    servers = ok && file->project.p ? project_servers(file, buf_str(&text), mem) : buf_str(&text);
    ok = ok && (!servers.n || snippet_read(servers, mem, ret, ret_n, err));
    buf_release(&text);
    return ok;
}
