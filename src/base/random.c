/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes.  Each thread fills a pool from getrandom(2) and hands out slices, so most tokens
 * cost no system call.  A pool from before fork(2) is never used after it, and bytes are wiped from
 * the pool as they are handed out: no two callers ever get the same bytes. */
#include "base/random.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

struct pool {
    uint8_t bytes[512];
    size_t left; /* unused bytes, at the end */
    unsigned generation;
};

static _Thread_local struct pool pool;
static _Atomic unsigned generation; /* incremented in the child of every fork */
static _Atomic bool fake;
static _Atomic uint64_t fake_state;
static _Atomic uint64_t last_v7; /* milliseconds and 12 bits of counter */
static pthread_once_t watch_forks = PTHREAD_ONCE_INIT;

static void after_fork(void)
{
    generation++;
}

static void start_watching(void)
{
    pthread_atfork(NULL, NULL, after_fork);
}

static void draw(void *p, size_t n)
{
    uint8_t *at = p;

    while (n > 0) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            die("getrandom does not work here: %s; allow it in the sandbox", strerror(errno));
        at += got;
        n -= (size_t)got;
    }
}

/* splitmix64: for tests only. */
static uint64_t fake_u64(void)
{
    uint64_t z = atomic_fetch_add(&fake_state, 0x9e3779b97f4a7c15u) + 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void fake_bytes(uint8_t *p, size_t n)
{
    while (n > 0) {
        uint64_t word = fake_u64();
        size_t part = n < sizeof(word) ? n : sizeof(word);
        memcpy(p, &word, part);
        p += part;
        n -= part;
    }
}

void random_bytes(void *p, size_t n)
{
    if (unlikely(fake)) {
        fake_bytes(p, n);
        return;
    }
    if (n > sizeof(pool.bytes) / 2) {
        draw(p, n);
        return;
    }
    pthread_once(&watch_forks, start_watching);
    if (pool.left < n || pool.generation != generation) {
        draw(pool.bytes, sizeof(pool.bytes));
        pool.left = sizeof(pool.bytes);
        pool.generation = generation;
    }
    pool.left -= n;
    memcpy(p, pool.bytes + pool.left, n);
    explicit_bzero(pool.bytes + pool.left, n);
}

uint64_t random_u64(void)
{
    uint64_t value;

    random_bytes(&value, sizeof(value));
    return value;
}

uint64_t random_below(uint64_t limit)
{
    uint64_t biased, value;

    if (limit < 2)
        return 0;
    biased = -limit % limit; /* this many low values would occur once too often */
    do {
        value = random_u64();
    } while (value < biased);
    return value % limit;
}

void random_set_fake(uint64_t seed)
{
    fake_state = seed;
    last_v7 = 0;
    fake = true;
}

void random_set_real(void)
{
    fake = false;
}

static void uuid_write(uint8_t b[16], unsigned version, char ret_text[UUID_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    char *out = ret_text;

    b[6] = (uint8_t)((b[6] & 0x0f) | version << 4);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    for (unsigned i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *out++ = '-';
        *out++ = digits[b[i] >> 4];
        *out++ = digits[b[i] & 15];
    }
    *out = '\0';
}

void random_uuid4(char ret_text[UUID_TEXT])
{
    uint8_t b[16];

    random_bytes(b, sizeof(b));
    uuid_write(b, 4, ret_text);
}

/* Strictly increasing within the process, also inside one millisecond.  Uses life time, so that a
 * later row sorts later even if the wall clock is set. */
static uint64_t next_v7(void)
{
    uint64_t now = (uint64_t)clock_life_ms() << 12;
    uint64_t last = last_v7, next;

    do {
        bool behind = now <= last && last - now < (uint64_t)10000 << 12;
        next = behind ? last + 1 : now;
    } while (!atomic_compare_exchange_weak(&last_v7, &last, next));
    return next;
}

void random_uuid7(char ret_text[UUID_TEXT])
{
    uint8_t b[16];
    uint64_t stamp = next_v7();

    random_bytes(b + 8, 8);
    for (unsigned i = 0; i < 6; i++)
        b[i] = (uint8_t)(stamp >> (12 + 8 * (5 - i)));
    b[6] = (uint8_t)(stamp >> 8 & 0x0f);
    b[7] = (uint8_t)stamp;
    uuid_write(b, 7, ret_text);
}
