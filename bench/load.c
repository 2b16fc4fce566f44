/* SPDX-License-Identifier: Apache-2.0 */
/* bench_load PORT PATH [--connections N] [--seconds T] [--warmup T] [--body B] [--sessions N]
 * [--modern 1] [--key KEY] [--rate R] [--text plain|english|starts]: the load.
 *
 * One thread, epoll; every connection is kept alive, has a session of its own (from its initialize)
 * and one request on the way, with a fresh JSON-RPC id that the answer must carry.  Prints one line
 * of JSON: calls, errors, calls/s and latency percentiles in microseconds.  With --sessions it only
 * makes N sessions by initialize, over the same connections, and prints how fast.  With --modern
 * there are no sessions: every call carries its envelope, within the same --body, and its headers.
 * With --rate so many calls a second leave in all, over whichever connections are free, instead of
 * the next with each answer.  Results that a limit of the key refused are counted as such.
 *
 * The argument of a call is one letter over and over (plain), sentences of English words, or words
 * that begin like tokens do and go on otherwise (starts), each call from another place on.
 *
 * An answer that is not a 200 with the id of its request counts as an error and is shown once: a
 * run with errors is no measurement. */
#include "client.h"

#include <sys/epoll.h>
#include <unistd.h>

#define MAX_BODY (200 * 1024)
#define MAX_ANSWER (256 * 1024)

struct options {
    int port;
    const char *path;
    unsigned connections;
    double seconds, warmup;
    size_t body;
    unsigned long sessions;
    bool is_modern;
    const char *key;
    double rate;      /* calls a second; 0: as many as are answered */
    const char *text; /* the kind of the argument */
};

struct conn {
    int fd;
    bool initialized, is_free;
    char session[160];
    uint64_t id, sent_ns;
    size_t n;
    char in[MAX_ANSWER + 1];
};

static struct options options = {
    .connections = 64, .seconds = 5, .warmup = 0.5, .body = 504, .text = "plain"};
static struct latencies latencies;
static uint64_t next_id = 1000000, calls, limited, errors, initialized, measure_from, measure_to;
static struct conn **connections; /* with --rate */
static unsigned next_free;
static uint64_t next_ns;
#define TEXT_STEP 4099 /* bytes from the text of one call to that of the next; prime */
static char padding[2 * MAX_BODY];
static size_t padding_step; /* 0: every call has the same text */

static void count_error(const char *what, const char *detail)
{
    if (errors++ == 0)
        fprintf(stderr, "first error: %s: %.300s\n", what, detail);
}

#define MODERN_LINES                                                                               \
    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n"
#define MODERN_META                                                                                \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":{}},"

static void send_request(struct conn *c, const char *body, size_t n)
{
    static char out[MAX_BODY + 2048];
    int head =
        snprintf(out, 2048,
                 "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                 "Accept: application/json, text/event-stream\r\n%s%s%s%s%s%s%sContent-Length: "
                 "%zu\r\n\r\n",
                 options.path, options.port, options.key ? "X-API-Key: " : "",
                 options.key ? options.key : "", options.key ? "\r\n" : "",
                 options.is_modern ? MODERN_LINES : "", c->session[0] ? "Mcp-Session-Id: " : "",
                 c->session, c->session[0] ? "\r\nMCP-Protocol-Version: 2025-11-25\r\n" : "", n);
    memcpy(out + head, body, n);
    c->sent_ns = now_ns();
    send_all(c->fd, out, (size_t)head + n);
}

static void send_initialize(struct conn *c)
{
    char body[512];
    c->session[0] = '\0';
    c->id = next_id++;
    int n =
        snprintf(body, sizeof body,
                 "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"initialize\",\"params\":{"
                 "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":"
                 "\"bench\",\"version\":\"1\"}}}",
                 (unsigned long long)c->id);
    send_request(c, body, (size_t)n);
}

static void send_call(struct conn *c)
{
    static char body[MAX_BODY + 512];
    static const char tail[] = "\"}}}";
    c->id = next_id++;
    int head = snprintf(
        body, 512,
        "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"tools/call\",\"params\":{%s\"name\":"
        "\"echo\",\"arguments\":{\"text\":\"",
        (unsigned long long)c->id, options.is_modern ? MODERN_META : "");
    size_t fixed = (size_t)head + sizeof tail - 1;
    size_t pad = options.body > fixed ? options.body - fixed : 0;
    memcpy(body + head, padding + c->id * padding_step % MAX_BODY, pad);
    memcpy(body + head + pad, tail, sizeof tail - 1);
    send_request(c, body, fixed + pad);
}

static bool body_has_id(const char *body, size_t n, uint64_t id)
{
    char wanted[48];
    int size = snprintf(wanted, sizeof wanted, "\"id\":%llu", (unsigned long long)id);
    return memmem(body, n, wanted, (size_t)size) != NULL;
}

static void on_answer(struct conn *c, const char *body, size_t n)
{
    uint64_t now = now_ns();
    if (strncmp(c->in, "HTTP/1.1 200", 12) != 0)
        count_error("status", c->in);
    else if (!body_has_id(body, n, c->id))
        count_error("another's answer", body);
    if (!c->initialized || options.sessions) {
        if (!header_value(c->in, "\r\nmcp-session-id:", c->session, sizeof c->session))
            c->session[0] = '\0';
        c->initialized = true;
        initialized++;
        return;
    }
    if (now >= measure_from && now < measure_to) {
        latency_add(&latencies, now - c->sent_ns);
        calls++;
        limited += memmem(body, n, "holdfast/retry-after", 20) != NULL;
    }
}

static void next_request(struct conn *c)
{
    if (options.rate > 0)
        c->is_free = true;
    else if (!options.sessions)
        send_call(c);
    else if (initialized + options.connections <= options.sessions)
        send_initialize(c);
}

/* Is the answer whole?  A slow one comes as a stream of events, in chunks. */
static bool is_whole(struct conn *c, size_t head, size_t *ret_size)
{
    char value[32];
    if (header_value(c->in, "\r\ncontent-length:", value, sizeof value)) {
        *ret_size = strtoul(value, NULL, 10);
        return c->n >= head + *ret_size;
    }
    if (!header_value(c->in, "\r\ntransfer-encoding:", value, sizeof value)) {
        fprintf(stderr, "an answer without a length: %.200s\n", c->in);
        exit(1);
    }
    *ret_size = c->n - head;
    return *ret_size >= 5 && memcmp(c->in + c->n - 5, "0\r\n\r\n", 5) == 0;
}

/* One answer is on the way at a time, so the buffer holds at most that one. */
static void on_readable(struct conn *c)
{
    ssize_t got = recv(c->fd, c->in + c->n, MAX_ANSWER - c->n, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        fprintf(stderr, "connection closed by the subject after %llu calls\n",
                (unsigned long long)calls);
        exit(1);
    }
    c->n += (size_t)got;
    c->in[c->n] = '\0';
    char *end = strstr(c->in, "\r\n\r\n");
    size_t size;
    if (!end)
        return;
    size_t head = (size_t)(end - c->in) + 4;
    if (!is_whole(c, head, &size))
        return;
    on_answer(c, c->in + head, size);
    c->n = 0;
    next_request(c);
}

/* Those that are due leave, as far as there are connections for them; the rest is not made up for.
 */
static void send_due(void)
{
    uint64_t now = now_ns(), step = (uint64_t)(1e9 / options.rate);

    if (now > next_ns + 100 * 1000000u)
        next_ns = now;
    for (unsigned tried = 0; next_ns <= now && tried < options.connections;) {
        struct conn *c = connections[next_free++ % options.connections];
        if (!c->is_free) {
            tried++;
            continue;
        }
        c->is_free = false;
        next_ns += step;
        tried = 0;
        send_call(c);
    }
}

static struct conn *connect_one(int epoll)
{
    struct conn *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->fd = connect_local(options.port);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event);
    if (options.is_modern) {
        c->initialized = true;
        initialized++;
        send_call(c);
    } else {
        send_initialize(c);
    }
    return c;
}

static void turn(int epoll)
{
    struct epoll_event events[256];
    int n = epoll_wait(epoll, events, 256, options.rate > 0 ? 1 : 100);
    if (options.rate > 0)
        send_due();
    for (int i = 0; i < n; i++)
        on_readable(events[i].data.ptr);
}

static void print_result(double seconds)
{
    if (options.sessions)
        printf("{\"sessions\":%llu,\"errors\":%llu,\"seconds\":%.3f,\"per_s\":%.0f}\n",
               (unsigned long long)initialized, (unsigned long long)errors, seconds,
               (double)initialized / seconds);
    else
        printf("{\"calls\":%llu,\"limited\":%llu,\"errors\":%llu,\"seconds\":%.3f,\"per_s\":%.0f,"
               "\"p50_us\":%llu,"
               "\"p90_us\":%llu,\"p99_us\":%llu,\"p999_us\":%llu}\n",
               (unsigned long long)calls, (unsigned long long)limited, (unsigned long long)errors,
               seconds, (double)calls / seconds,
               (unsigned long long)latency_percentile(&latencies, 0.5),
               (unsigned long long)latency_percentile(&latencies, 0.9),
               (unsigned long long)latency_percentile(&latencies, 0.99),
               (unsigned long long)latency_percentile(&latencies, 0.999));
}

static void read_options(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: bench_load PORT PATH [--connections N] [--seconds T] [--warmup T] "
                        "[--body B] [--sessions N] [--modern 1] [--key KEY] [--rate R] "
                        "[--text plain|english|starts]\n");
        exit(2);
    }
    options.port = (int)strtol(argv[1], NULL, 10);
    options.path = argv[2];
    for (int i = 3; i + 1 < argc; i += 2) {
        double value = strtod(argv[i + 1], NULL);
        if (strcmp(argv[i], "--connections") == 0)
            options.connections = (unsigned)value;
        else if (strcmp(argv[i], "--seconds") == 0)
            options.seconds = value;
        else if (strcmp(argv[i], "--warmup") == 0)
            options.warmup = value;
        else if (strcmp(argv[i], "--body") == 0 && value <= MAX_BODY)
            options.body = (size_t)value;
        else if (strcmp(argv[i], "--sessions") == 0)
            options.sessions = (unsigned long)value;
        else if (strcmp(argv[i], "--key") == 0)
            options.key = argv[i + 1];
        else if (strcmp(argv[i], "--rate") == 0)
            options.rate = value;
        else if (strcmp(argv[i], "--text") == 0)
            options.text = argv[i + 1];
        else if (strcmp(argv[i], "--modern") == 0)
            options.is_modern = value != 0;
        else {
            fprintf(stderr, "unknown option or bad value: %s %s\n", argv[i], argv[i + 1]);
            exit(2);
        }
    }
}

/* Words in an order that repeats only after a long time, a full stop after every twelfth or so. */
static void fill_words(const char *const *words, size_t n)
{
    uint64_t state = 7;
    size_t at = 0;

    while (at < sizeof padding) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const char *word = words[(state >> 33) % n];
        size_t room = sizeof padding - at, length = strlen(word);
        length = length < room ? length : room;
        memcpy(padding + at, word, length);
        at += length;
        if (at < sizeof padding && (state >> 20) % 12 == 0)
            padding[at++] = '.';
        if (at < sizeof padding)
            padding[at++] = ' ';
    }
}

static void fill_padding(void)
{
    static const char *const english[] = {
        "the",     "of",        "and",     "a",       "to",     "in",     "is",       "that",
        "for",     "it",        "with",    "as",      "was",    "on",     "be",       "by",
        "this",    "are",       "from",    "at",      "not",    "have",   "which",    "but",
        "server",  "session",   "request", "answer",  "result", "file",   "document", "people",
        "under",   "water",     "place",   "because", "great",  "number", "between",  "through",
        "weather", "quarterly", "report",  "meeting", "budget", "key",    "password", "author"};
    static const char *const starts[] = {"ghost", "ghp",   "github", "skate", "sk",    "skill",
                                         "xoxo",  "xenon", "AKA",    "AIM",   "eye",   "eyJ",
                                         "npm",   "glpat", "ya",     "hf",    "Basic", "Bearer",
                                         "SG",    "rk",    "pk",     "whsec", "dop",   "shpat"};

    memset(padding, 'q', sizeof padding);
    if (strcmp(options.text, "plain") == 0)
        return;
    padding_step = TEXT_STEP;
    if (strcmp(options.text, "english") == 0)
        fill_words(english, sizeof english / sizeof english[0]);
    else
        fill_words(starts, sizeof starts / sizeof starts[0]);
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    fill_padding();
    if (options.sessions && options.connections > options.sessions)
        options.connections = (unsigned)options.sessions;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    uint64_t began = now_ns();
    measure_from = UINT64_MAX;
    connections = calloc(options.connections + 1, sizeof(struct conn *));
    if (!connections)
        abort();
    for (unsigned i = 0; i < options.connections; i++)
        connections[i] = connect_one(epoll);
    if (options.sessions) {
        while (initialized < options.sessions)
            turn(epoll);
        print_result((double)(now_ns() - began) / 1e9);
        return errors != 0;
    }
    while (initialized < options.connections)
        turn(epoll);
    measure_from = now_ns() + (uint64_t)(options.warmup * 1e9);
    measure_to = measure_from + (uint64_t)(options.seconds * 1e9);
    /* Marks for who measures the subject's CPU: the clock starts and stops with these lines. */
    while (now_ns() < measure_from)
        turn(epoll);
    printf("begin\n");
    fflush(stdout);
    while (now_ns() < measure_to)
        turn(epoll);
    printf("end\n");
    fflush(stdout);
    print_result(options.seconds);
    return errors != 0;
}
