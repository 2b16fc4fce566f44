/* SPDX-License-Identifier: Apache-2.0 */
/* bench_redact [FILE...]: what redaction costs for each byte of a body, in nanoseconds: the best of
 * many rounds; for a request without a credential, with a key, and with a stored credential too.  A
 * file is measured by its first 8 KiB.  Links with the library; needs no Holdfast that runs. */
#include "audit/redact.h"
#include "base/buf.h"
#include "json/write.h"

#include <stdio.h>
#include <time.h>

#define BODY 8192
#define ROUNDS 400
#define REPEATS 20

static const char english[] =
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, "
    "must be in want of a wife. However little known the feelings or views of such a man may be on "
    "his first entering a neighbourhood, this truth is so well fixed in the minds of the "
    "surrounding families, that he is considered as the rightful property of some one or other of "
    "their daughters. My dear Mr. Bennet, said his lady to him one day, have you heard that "
    "Netherfield Park is let at last? Mr. Bennet replied that he had not. But it is, returned she; "
    "for Mrs. Long has just been here, and she told me all about it. ";
/* The same with words that resemble names of secrets. */
static const char wordy[] =
    "The author of this passage had a private cook who could bear no credit to the basic authority "
    "of the key, the code and the connection; they passed access to the token bear, and "
    "significant "
    "instructions demonstrated the password policy. ";
static const char json[] = "{\\\"name\\\":\\\"echo\\\",\\\"arguments\\\":{\\\"text\\\":\\\"hello, "
                           "world\\\",\\\"count\\\":42}},";
static const char beginnings[] = "gh gh ghx ghp ghq gho gh_ gh ";
static const char short_tokens[] = "ghp_x sk-1 xoxb- glpat- eyJ hf_ AKIA ";
static const char code[] =
    "static bool has_prefix(struct str text, size_t at, const struct shape *shape)\\n{\\n    if "
    "(text.n - at < shape->prefix.n)\\n        return false;\\n    const char *p = text.p + at;\\n";

static const struct {
    const char *name, *text;
} bodies[] = {
    {"English text", english},
    {"English with such words", wordy},
    {"JSON in a string", json},
    {"full of gh", beginnings},
    {"full of beginnings", short_tokens},
    {"source text", code},
    {"a run of q", "qqqqqqqq"},
    {"a run of r", "rrrrrrrr"},
    {"indents", "\\n                    x"},
};

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void fill(struct buf *b, const char *text)
{
    buf_reset(b);
    buf_addz(b, "{\"content\":[{\"type\":\"text\",\"text\":\"");
    while (b->n < BODY)
        buf_addz(b, text);
    buf_addz(b, "\"}],\"isError\":false}");
}

static double measure(struct redactor *r, const struct own_secrets *own, struct str body)
{
    int64_t best = INT64_MAX;

    for (int i = 0; i < ROUNDS; i++) {
        int64_t began = now_ns();
        for (int k = 0; k < REPEATS; k++)
            (void)redact_body(r, own, body, true, 16384);
        int64_t took = now_ns() - began;
        if (took < best)
            best = took;
    }
    return (double)best / REPEATS / (double)body.n;
}

/* The first BODY bytes of a file, as the text of a result. */
static bool fill_from(struct buf *b, const char *path)
{
    char text[BODY];
    FILE *file = fopen(path, "r");

    if (!file)
        return false;
    size_t n = fread(text, 1, sizeof(text), file);
    fclose(file);
    buf_reset(b);
    buf_addz(b, "{\"content\":[{\"type\":\"text\",\"text\":");
    js_quote(b, str_n(text, n));
    buf_addz(b, "}],\"isError\":false}");
    return true;
}

/* With the credential of a request, and with a session's stored one beside it. */
static void print(struct redactor *r, const char *name, struct str body)
{
    struct known *known = known_new(false);
    struct own_secrets own = {
        .credential = STR("hf_0123456789ab_Qx7-Zk_0123456789abcdefghijABCDEFGHIJ0123456"),
        .credential_marker = STR("[redacted: header Authorization]"),
    };
    struct own_secrets both = own;

    known_add_setting(known, STR("plum-tree-on-the-hill"), STR("a credential"));
    known_finish(known);
    both.known = known;
    printf("%-26.26s %7.3f %7.3f %7.3f\n", name, measure(r, NULL, body), measure(r, &own, body),
           measure(r, &both, body));
    known_unref(known);
}

int main(int argc, char **argv)
{
    struct redactor *r = redactor_new();
    struct buf b;

    redactor_trust_json(r);
    buf_init(&b, 8 * BODY);
    printf("%-26s   plain     key    both  (ns/byte)\n", "");
    for (size_t i = 0; i < countof(bodies); i++) {
        fill(&b, bodies[i].text);
        print(r, bodies[i].name, buf_str(&b));
    }
    for (int i = 1; i < argc; i++)
        if (fill_from(&b, argv[i]))
            print(r, argv[i], buf_str(&b));
    buf_release(&b);
    redactor_free(r);
    return 0;
}
