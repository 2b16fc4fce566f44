/* SPDX-License-Identifier: Apache-2.0 */
#include "docs/cli/add.h"

#include "cli/config_file.h"
#include "json/write.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define COUNTED_MAX 100000 /* files; a larger folder is said to have more */
#define OPEN_DIRECTORIES 16

/* For nftw(), which passes no argument to its callback. */
static size_t n_files, n_documents;

static int count_document(const char *path, const struct stat *st unused_arg, int kind,
                          struct FTW *at unused_arg)
{
    size_t n = strlen(path);

    if (kind != FTW_F)
        return 0;
    n_documents += n > 3 && strcmp(path + n - 3, ".md") == 0;
    return ++n_files >= COUNTED_MAX;
}

/* The whole path of the folder. */
static bool find_folder(struct cli *cli, const char *given, struct str *ret, struct error *err)
{
    char *whole = realpath(given, NULL);
    struct stat st;

    if (!whole)
        return error_sys(err, ERR_NOT_FOUND, errno,
                         "%.200s cannot be used; create the folder first", given);
    *ret = arena_dup(cli->mem, str_of(whole));
    free(whole);
    if (stat(ret->p, &st) != 0 || !S_ISDIR(st.st_mode))
        return error_set(err, ERR_BAD_INPUT,
                         "%.200s is not a folder; name the folder that has the Markdown files",
                         given);
    n_files = n_documents = 0;
    nftw(ret->p, count_document, OPEN_DIRECTORIES, FTW_PHYS);
    return true;
}

/* JSON, in cli->mem. */
static struct str entry_of(struct cli *cli, struct str folder)
{
    const char *agent = cli_flag(cli, "--agent");
    struct js_writer w;
    struct buf out;

    buf_init(&out, SIZE_MAX / 4);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "path", folder);
    if (agent)
        js_kv_string(&w, "agent", str_of(agent));
    js_object_end(&w);
    struct str entry = arena_dup(cli->mem, buf_str(&out));
    buf_release(&out);
    return entry;
}

static bool add_folder(struct cli *cli, struct config_file *file, struct str folder,
                       struct error *err)
{
    struct str path[] = {STR("holdfast"), STR("docs"), str_of(cli->args[1])};

    if (config_file_has(cli, file, path, countof(path)))
        return error_set(err, ERR_CONFLICT,
                         "%.*s has a folder \"%.64s\" already; choose another name, or change it "
                         "there",
                         STR_ARG(file->path), cli->args[1]);
    return config_file_change(cli, file, path, countof(path), entry_of(cli, folder), err);
}

static void print_json(struct cli *cli, struct str folder, const struct config_file *file,
                       struct buf *out)
{
    struct js_writer w;

    js_begin(&w, out);
    js_object(&w);
    js_kv_string(&w, "folder", str_of(cli->args[1]));
    js_kv_string(&w, "path", folder);
    js_kv_int(&w, "documents", (int64_t)n_documents);
    js_kv_string(&w, "file", file->path);
    js_object_end(&w);
}

static void print_text(struct cli *cli, struct str folder, const struct config_file *file,
                       struct str reload, struct buf *out)
{
    buf_addf(out, "✔ %s  %s%zu document%s in %.*s\n", cli->args[1],
             n_files >= COUNTED_MAX ? "more than " : "", n_documents, n_documents == 1 ? "" : "s",
             STR_ARG(folder));
    buf_addf(out, "  written to %.*s", STR_ARG(file->path));
    if (reload.p)
        buf_addf(out, "\n  %.*s", STR_ARG(reload));
    buf_addf(
        out,
        "\n  next: holdfast connect claude-code, then ask it to edit a document; holdfast docs "
        "review %s shows what it suggests",
        cli->args[1]);
}

int docs_add(struct cli *cli)
{
    struct config_file file = {0};
    struct str folder = STR_NONE;
    struct error err;
    struct buf out;

    if (!find_folder(cli, cli->args[2], &folder, &err) || !config_file_open(cli, &file, &err) ||
        !add_folder(cli, &file, folder, &err))
        return cli_refuse(cli, &err);
    struct str reload = config_file_reload(cli, &file);
    buf_init(&out, SIZE_MAX / 4);
    if (cli_flag(cli, "--json"))
        print_json(cli, folder, &file, &out);
    else
        print_text(cli, folder, &file, reload, &out);
    int status = cli_print(cli, &out);
    buf_release(&out);
    return status;
}
