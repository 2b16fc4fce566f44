/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast version: the version that a bug report should name; with --json also the libraries'. */
#include "cli/cli.h"
#include "json/write.h"

#include <openssl/crypto.h>
#include <sqlite3.h>

int cmd_version(struct cli *cli)
{
    struct js_writer w;
    struct buf out;

    if (cli->n_args)
        return cli_usage(cli, "version takes no argument \"%.100s\"", cli->args[0]);
    buf_init(&out, 64 * 1024);
    if (cli_flag(cli, "--json")) {
        js_begin(&w, &out);
        js_object(&w);
        js_kv_string(&w, "version", STR(HOLDFAST_VERSION));
        js_kv_string(&w, "openssl", str_of(OpenSSL_version(OPENSSL_VERSION_STRING)));
        js_kv_string(&w, "sqlite", str_of(sqlite3_libversion()));
        js_object_end(&w);
    } else {
        buf_addz(&out, "holdfast " HOLDFAST_VERSION);
    }
    int status = cli_print(cli, &out);
    buf_release(&out);
    return status;
}
