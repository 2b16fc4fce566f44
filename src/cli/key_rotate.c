/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast key rotate-master and rotate-token.  The command owns the data directory meanwhile, also
 * with PostgreSQL, because a daemon would go on wrapping new keys with the old master key.
 * session/rotate.c rotates the master key.  A new key in a file is checked like the key in use. */
#include "cli/key_rotate.h"

#include "base/random.h"
#include "config/datadir.h"
#include "config/config.h"
#include "crypto/hash.h"
#include "crypto/key_file.h"
#include "crypto/master.h"
#include "identity/own_tokens.h"
#include "session/rotate.h"
#include "store/claim.h"
#include "store/database.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_FILE_MAX 4096

static bool read_new(const char *file, char ret[KEY_FILE_MAX], struct str *ret_text,
                     struct error *err)
{
    struct master *m = NULL;
    size_t n = 0;

    if (!file)
        return true;
    if (!master_load(str_of(file), false, &m, err)) /* checks its mode and its content */
        return false;
    master_free(m);
    FILE *in = fopen(file, "re");
    if (in) {
        n = fread(ret, 1, KEY_FILE_MAX, in);
        fclose(in);
    }
    *ret_text = str_n(ret, n);
    return n > 0 || error_sys(err, ERR_CONFIG, errno, "the new master key %s cannot be read", file);
}

static void print_rotation(const struct rotation *r, bool json, struct buf *out)
{
    if (json)
        buf_addf(out,
                 "{\"master_id\":\"%s\",\"resumed\":%s,\"keys_wrapped\":%zu,\"keys_made\":%zu,"
                 "\"sessions_sealed\":%zu,\"unreadable\":%zu,\"secrets_sealed\":%zu,"
                 "\"unreadable_secrets\":%zu}",
                 r->master_id, r->resumed ? "true" : "false", r->keys, r->made, r->rows,
                 r->unusable, r->secrets, r->unusable_secrets);
    else
        buf_addf(out,
                 "%smaster key %s is in use: %zu tenant key%s wrapped again, %zu replaced, "
                 "credentials of %zu session%s and %zu secret%s sealed again\n",
                 r->resumed ? "completed an earlier rotation that was interrupted; " : "",
                 r->master_id, r->keys, r->keys == 1 ? "" : "s", r->made, r->rows,
                 r->rows == 1 ? "" : "s", r->secrets, r->secrets == 1 ? "" : "s");
    if (r->unusable_secrets && !json)
        fprintf(stderr,
                "%zu secrets of the configuration cannot be opened by any key here; set them again "
                "with `holdfast secret set NAME`\n",
                r->unusable_secrets);
    if (r->unusable && !json)
        fprintf(stderr,
                "the credentials of %zu sessions cannot be opened by any key here; they were left "
                "as they are\n",
                r->unusable);
}

bool key_rotate(struct cli *cli, bool json, struct buf *out, struct error *err)
{
    struct str data_dir, text = STR_NONE;
    struct datadir *owned = NULL;
    struct store *store = NULL;
    struct rotation rotation = {0};
    struct database db;
    char fresh[KEY_FILE_MAX];
    bool is_ours;

    bool ok = config_data_dir(str_of(cli_flag(cli, "--data")), cli->mem, &data_dir, err) &&
              database_choose(str_of(getenv("DATABASE_URL")), data_dir, cli->mem, &db, err) &&
              read_new(cli_flag(cli, "--new-file"), fresh, &text, err) &&
              datadir_own(data_dir, &owned, err) &&
              database_open(&db, (struct store_config){0}, &store, err) &&
              rotate_master(store, master_path(data_dir, cli->mem, &is_ours), text,
                            cli_flag(cli, "--reseal"), &rotation, err);
    crypto_wipe(fresh, sizeof(fresh));
    if (ok)
        print_rotation(&rotation, json, out);
    if (store)
        store_close(store);
    datadir_release(owned);
    return ok;
}

/* Writes the file before the claim: if the claim fails, only this node is refused, and running the
 * command again repairs that. */
static bool renew_token_key(struct store *store, struct str path, struct error *err)
{
    const struct key_claim claim = {
        .file = "token.key", .variable = "HOLDFAST_TOKEN_KEY_FILE", .path = path};
    uint8_t seed[KEY_FILE_BYTES], print[32];
    char text[2 * KEY_FILE_BYTES + 2];

    random_bytes(seed, sizeof(seed));
    hex_encode(seed, sizeof(seed), text);
    text[2 * KEY_FILE_BYTES] = '\n';
    struct own_tokens *tokens = own_tokens_new(seed);
    own_tokens_fingerprint(tokens, print);
    own_tokens_free(tokens);
    bool ok = key_file_put(path.p, str_n(text, 2 * KEY_FILE_BYTES + 1), false) ||
              error_sys(err, ERR_CONFIG, errno, "%s cannot be written", path.p);
    crypto_wipe(seed, sizeof(seed));
    crypto_wipe(text, sizeof(text));
    return ok && claim_key_rotated(store, &claim, print, err);
}

bool key_rotate_token(struct cli *cli, bool json, struct buf *out, struct error *err)
{
    struct datadir *owned = NULL;
    struct store *store = NULL;
    struct str data_dir, path;
    struct database db;
    bool is_own, ok;

    if (!config_data_dir(str_of(cli_flag(cli, "--data")), cli->mem, &data_dir, err) ||
        !database_choose(str_of(getenv("DATABASE_URL")), data_dir, cli->mem, &db, err))
        return false;
    path = datadir_token_key(data_dir, cli->mem, &is_own);
    if (key_is_handed_over(path.p))
        return error_set(err, ERR_CONFIG,
                         "%s comes from the service manager; replace the credential there", path.p);
    ok = datadir_own(data_dir, &owned, err) &&
         database_open(&db, (struct store_config){0}, &store, err) &&
         renew_token_key(store, path, err);
    if (ok && json)
        buf_addf(out, "{\"rotated\":\"token.key\"}");
    else if (ok)
        buf_addf(out,
                 "%s is replaced: access tokens are no longer valid, refresh tokens still are; "
                 "copy the file to the other nodes of this database and restart them\n",
                 path.p);
    if (store)
        store_close(store);
    datadir_release(owned);
    return ok;
}
