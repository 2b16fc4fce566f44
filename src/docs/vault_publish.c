/* SPDX-License-Identifier: Apache-2.0 */
/* Changing a document that people may save at any time.  The exchange of names is the only step
 * that a reader or an editor can see, and it loses nothing: afterwards we hold the displaced text.
 * If that is not the text the change was made from, a person saved first.
 *
 *   round:  stage(fresh) ─> exchange ─> displaced
 *     displaced == expected (base; later our own text of the round before): published
 *     else it is a person's save: fresh = apply(save), expected = the text we just published, again
 *   back:   the person's last save is staged, our text is the file: exchange; if the displaced text
 *           is not ours, a person saved over it: that save is the last now, so exchange again
 *
 * Every name that took part in an exchange is kept for vault_late(): an editor may have had the
 * file open.  Fault points stop like a crash would: without any cleanup. */
#include "base/buf.h"
#include "base/fault.h"
#include "base/utf8.h"
#include "crypto/hash.h"
#include "docs/vault_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define ROUNDS_MAX 5
#define BACK_MAX 32
/* The base; two per round; two for each step back, and the text that the file holds at the end. */
#define VERSIONS_MAX (3 + 2 * ROUNDS_MAX + 2 * BACK_MAX)
#define STAGED_MAX (ROUNDS_MAX * VAULT_STAGE_NAME)

struct publish {
    struct vault *v;
    struct str path;
    vault_apply *apply;
    void *arg;
    struct arena *mem;
    struct vault_published *ret;
    char *staged;        /* ret->staged's bytes, room for STAGED_MAX */
    struct str expected; /* the file's text, unless a person saved */
    struct str fresh;    /* the text to publish */
};

static void find_shared(struct vault_version *v, struct str before)
{
    size_t n = v->bytes.n < before.n ? v->bytes.n : before.n;

    while (v->prefix < n && v->bytes.p[v->prefix] == before.p[v->prefix])
        v->prefix++;
    while (v->suffix < n - v->prefix &&
           v->bytes.p[v->bytes.n - v->suffix - 1] == before.p[before.n - v->suffix - 1])
        v->suffix++;
}

static void add_version(struct publish *p, struct str bytes, bool is_ours)
{
    struct vault_version *version = &p->ret->versions[p->ret->n];

    assert(p->ret->n < VERSIONS_MAX);
    *version = (struct vault_version){.bytes = bytes, .is_ours = is_ours};
    sha256(bytes, version->sha256);
    if (p->ret->n > 0)
        find_shared(version, version[-1].bytes);
    p->ret->n++;
}

static void keep_staged(struct publish *p, const char *name, struct str known)
{
    uint8_t digest[SHA256_BYTES];
    struct str *staged = &p->ret->staged;

    sha256(known, digest);
    vault_stage_keep(p->v, name, digest);
    if (memmem(staged->p, staged->n, name, VAULT_STAGE_NAME - 1))
        return;
    if (staged->n > 0)
        p->staged[staged->n++] = '\n';
    memcpy(p->staged + staged->n, name, VAULT_STAGE_NAME - 1);
    staged->n += VAULT_STAGE_NAME - 1;
}

/* Ends the call as if the process had crashed here. */
static bool stop(struct error *err)
{
    return error_set(err, ERR_INTERNAL, "stopped by a fault point; start again");
}

static bool exchange_failed(int errnum, struct error *err)
{
    switch (errnum) {
    case EINVAL:
    case ENOSYS:
        return error_set(err, ERR_UNAVAILABLE,
                         "the folder's file system cannot exchange two files in one step, so "
                         "documents cannot be changed safely; keep them on a local disk");
    case EXDEV:
        return error_set(err, ERR_UNAVAILABLE,
                         "the document is on another file system than its folder; serve that one "
                         "as a folder of its own");
    default:
        return vault_sys(err, errnum, "exchanging a document");
    }
}

/* Swaps the document's name and the staged name, and syncs both directories. */
static bool exchange(struct publish *p, const char *name, struct error *err)
{
    struct vault_place at;
    int stage = vault_stage_dir(p->v);

    if (stage < 0)
        return vault_sys(err, errno, "opening the folder of new texts");
    if (!vault_place_open(p->v, p->path, false, &at, err)) {
        close(stage);
        return false;
    }
    bool able = !fault_hits("vault.exchange");
    bool ok = (able && renameat2(stage, name, at.dir, at.name, RENAME_EXCHANGE) == 0) ||
              exchange_failed(able ? errno : EINVAL, err);
    if (ok && fsync(stage) == 0)
        (void)fsync(at.dir);
    vault_place_close(&at);
    close(stage);
    return ok;
}

static bool displaced_is(struct publish *p, const char *name, struct str bytes)
{
    int dir = vault_stage_dir(p->v);

    if (dir < 0)
        return false;
    bool same = vault_holds(p->v, dir, name, bytes);
    close(dir);
    return same;
}

static bool displaced_read(struct publish *p, const char *name, unsigned how, struct str *ret,
                           struct error *err)
{
    struct vault_file file;
    int dir = vault_stage_dir(p->v);

    if (dir < 0)
        return vault_sys(err, errno, "opening the folder of displaced texts");
    bool ok = vault_read_at(p->v, dir, name, how | VAULT_READ_PATIENTLY, p->mem, &file, err);
    close(dir);
    if (ok)
        *ret = file.bytes;
    return ok;
}

static bool displaced_stat(struct publish *p, const char *name, struct stat *ret)
{
    int dir = vault_stage_dir(p->v);

    if (dir < 0)
        return false;
    bool ok = fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW) == 0;
    close(dir);
    return ok;
}

/* The content of a staged name: its bytes.  If the bytes cannot be read (too large, a directory),
 * at least its inode and state. */
struct held {
    struct str bytes; /* absent: not readable, see `st` */
    struct stat st;
};

static bool is_version(const struct publish *p, struct str bytes)
{
    for (size_t i = 0; i < p->ret->n; i++)
        if (str_eq(p->ret->versions[i].bytes, bytes))
            return true;
    return false;
}

/* The file may have been written to since the last look, so its text becomes a version. */
static struct held hold(struct publish *p, const char *name)
{
    struct held h = {.bytes = STR_NONE};
    struct error ignored;

    if (!displaced_read(p, name, VAULT_READ_ANY_BYTES, &h.bytes, &ignored))
        displaced_stat(p, name, &h.st);
    else if (!is_version(p, h.bytes))
        add_version(p, h.bytes, false);
    return h;
}

static bool is_held(struct publish *p, const char *name, const struct held *h)
{
    struct stat st;

    if (h->bytes.p)
        return displaced_is(p, name, h->bytes);
    return displaced_stat(p, name, &st) && st.st_ino == h->st.st_ino &&
           st.st_size == h->st.st_size && st.st_mtim.tv_sec == h->st.st_mtim.tv_sec &&
           st.st_mtim.tv_nsec == h->st.st_mtim.tv_nsec;
}

/* Makes the file's text the last version. */
static void end_with(struct publish *p, struct str bytes)
{
    if (bytes.p && !str_eq(p->ret->versions[p->ret->n - 1].bytes, bytes))
        add_version(p, bytes, false);
}

/* `name` holds the person's last save, the file holds our text p->expected.  `err` is already
 * set. */
static bool back(struct publish *p, const char *name, struct error *err)
{
    struct held in_file = {.bytes = p->expected}, in_stage = hold(p, name), was;
    struct error why;
    bool is_unchanged = false;

    for (int i = 0; i < BACK_MAX && !is_unchanged; i++) {
        if (!is_held(p, name, &in_stage))
            in_stage = hold(p, name);
        if (!exchange(p, name, &why)) {
            keep_staged(p, name, in_stage.bytes);
            *err = why;
            return false;
        }
        if (fault_hits("vault.back"))
            return stop(err);
        was = in_file;
        in_file = in_stage;
        is_unchanged = is_held(p, name, &was);
        in_stage = is_unchanged ? was : hold(p, name);
    }
    end_with(p, in_file.bytes);
    keep_staged(p, name, in_stage.bytes);
    return false;
}

/* Makes p->fresh by apply, and checks it against the limits of every document. */
static bool make_fresh(struct publish *p, struct str from, struct error *err)
{
    struct str fresh = STR("");

    if (!p->apply(p->arg, from, p->mem, &fresh, err))
        return false;
    if (fresh.n > VAULT_FILE_MAX)
        return error_set(err, ERR_BAD_INPUT,
                         "the changed document would be larger than %u bytes; split it first",
                         VAULT_FILE_MAX);
    if (!utf8_is_valid(fresh))
        return error_set(err, ERR_BAD_INPUT, "the changed text is not UTF-8; send it as UTF-8");
    p->fresh = fresh;
    return true;
}

enum outcome {
    PUBLISHED,
    OVERTAKEN, /* p->fresh is the change, applied again to the person's save */
    REFUSED,   /* the change does not apply to the person's save */
    UNMOVED,   /* no exchange was made */
    STOPPED,
};

/* The displaced text is a person's save: applies the change to it again. */
static enum outcome overtaken(struct publish *p, const char *name, struct error *err)
{
    struct str ours = p->fresh, save = STR_NONE;

    p->expected = ours;
    if (!displaced_read(p, name, VAULT_READ_TEXT, &save, err))
        return REFUSED;
    add_version(p, save, false);
    add_version(p, ours, true);
    keep_staged(p, name, save);
    if (!make_fresh(p, save, err))
        return REFUSED;
    return fault_hits("vault.overtaken") ? stop(err), STOPPED : OVERTAKEN;
}

/* Stages p->fresh and exchanges it.  Unless UNMOVED, `ret_name` names the displaced file. */
static enum outcome publish_round(struct publish *p, char ret_name[VAULT_STAGE_NAME],
                                  struct error *err)
{
    char name[VAULT_STAGE_NAME];

    if (!vault_stage(p->v, p->path, p->fresh, false, name, err))
        return UNMOVED;
    if (fault_hits("vault.staged"))
        return stop(err), STOPPED;
    if (!exchange(p, name, err)) {
        vault_stage_drop(p->v, name);
        return UNMOVED;
    }
    memcpy(ret_name, name, sizeof name);
    if (fault_hits("vault.exchanged"))
        return stop(err), STOPPED;
    if (!displaced_is(p, name, p->expected))
        return overtaken(p, name, err);
    add_version(p, p->fresh, true);
    keep_staged(p, name, p->expected);
    p->ret->changed = true;
    return PUBLISHED;
}

static bool publish(struct publish *p, struct error *err)
{
    char name[VAULT_STAGE_NAME];
    enum outcome outcome = OVERTAKEN;
    int round = 0;

    for (; round < ROUNDS_MAX && outcome == OVERTAKEN; round++)
        outcome = publish_round(p, name, err);
    if (outcome == PUBLISHED)
        return true;
    if (outcome == STOPPED || (outcome == UNMOVED && round == 1))
        return false;
    if (outcome == OVERTAKEN)
        error_set(err, ERR_CONFLICT,
                  "the document was saved several times meanwhile; read it and try once more");
    return back(p, name, err);
}

bool vault_change(struct vault *v, struct str path, vault_apply *apply, void *arg,
                  struct arena *mem, struct vault_published *ret, struct error *err)
{
    struct publish p = {.v = v, .path = path, .apply = apply, .arg = arg, .mem = mem, .ret = ret};
    struct vault_file base;

    p.staged = arena_alloc(mem, STAGED_MAX);
    *ret = (struct vault_published){.staged = str_n(p.staged, 0)};
    ret->versions = arena_alloc(mem, VERSIONS_MAX * sizeof *ret->versions);
    if (!vault_read_patiently(v, path, mem, &base, err))
        return false;
    if (base.is_read_only)
        return error_set(err, ERR_DENIED,
                         "the document is read-only (its mode has no write permission); a person "
                         "makes it writable with chmod u+w");
    add_version(&p, base.bytes, false);
    p.expected = base.bytes;
    if (!make_fresh(&p, base.bytes, err))
        return false;
    return str_eq(p.fresh, base.bytes) || publish(&p, err);
}
