/* SPDX-License-Identifier: Apache-2.0 */
/* bench_rest PORT create|get|record|end|churn [--connections N] [--seconds T] [--warmup T]
 * [--count N] [--body B] [--ids FILE]: the load on the registry, by REST.
 *
 * One thread, epoll; every connection is kept alive and has one request on the way.  `create` makes
 * sessions, and puts their names into FILE; `get`, `record` and `end` go round over those of FILE;
 * `churn` makes one and ends it.  Runs for T seconds, or until N requests are answered, and prints
 * one line of JSON: calls, errors, calls/s, latencies in microseconds, also of each kind.
 *
 * An answer with another status, or about another session, counts as an error and is shown once. */
#include "client.h"

#include <sys/epoll.h>
#include <unistd.h>

#define MAX_BODY (64 * 1024)
#define MAX_ANSWER (64 * 1024)
#define NAME_ROOM 96

enum verb { CREATE, GET, RECORD, END, VERBS };

static const struct {
    const char *name, *method, *status,
        *proof; /* proof: in the answer; absent: the session's name */
} verbs[VERBS] = {
    [CREATE] = {"create", "POST", "HTTP/1.1 201", "\"session_id\":\"ses_"},
    [GET] = {"get", "GET", "HTTP/1.1 200", NULL},
    [RECORD] = {"record", "POST", "HTTP/1.1 200", "execution recorded"},
    [END] = {"end", "DELETE", "HTTP/1.1 200", "session terminated"},
};

struct conn {
    int fd;
    enum verb verb;
    char session[NAME_ROOM];
    uint64_t sent_ns;
    size_t n;
    char in[MAX_ANSWER + 1];
};

static struct {
    int port;
    enum verb verb;
    bool is_churn;
    unsigned connections;
    double seconds, warmup;
    uint64_t count;
    size_t body;
    const char *ids;
} options = {.connections = 64, .seconds = 5, .warmup = 0.5, .body = 504};

static struct latencies latencies[VERBS], all;
static uint64_t errors, sent, answered, next_name, measure_from, measure_to;
static char (*names)[NAME_ROOM];
static size_t n_names;
static FILE *made;
static char padding[MAX_BODY];

static void count_error(const char *what, const char *detail)
{
    if (errors++ == 0)
        fprintf(stderr, "first error: %s: %.300s\n", what, detail);
}

static size_t create_body(char *out)
{
    return (size_t)snprintf(out, 512,
                            "{\"edge_mcp_id\":\"edge-1\",\"client_name\":\"bench\","
                            "\"client_type\":\"claude-code\",\"client_version\":\"1.0.0\"}");
}

static size_t record_body(char *out)
{
    static const char tail[] = "\"},\"duration_ms\":12,\"tokens_used\":42}";
    size_t head = (size_t)snprintf(out, 512, "{\"tool_name\":\"echo\",\"arguments\":{\"text\":\"");
    size_t fixed = head + sizeof tail - 1;
    size_t pad = options.body > fixed ? options.body - fixed : 0;
    memcpy(out + head, padding, pad);
    memcpy(out + head + pad, tail, sizeof tail - 1);
    return fixed + pad;
}

static void send_request(struct conn *c)
{
    static char out[MAX_BODY + 4096], body[MAX_BODY + 512];
    size_t n = c->verb == CREATE ? create_body(body) : c->verb == RECORD ? record_body(body) : 0;
    int head = snprintf(out, 2048, "%s /api/v1/sessions%s%s%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n",
                        verbs[c->verb].method, c->verb == CREATE ? "" : "/",
                        c->verb == CREATE ? "" : c->session, c->verb == RECORD ? "/tools" : "",
                        options.port);
    head += n ? snprintf(out + head, 512,
                         "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n", n)
              : snprintf(out + head, 512, "\r\n");
    memcpy(out + head, body, n);
    sent++;
    c->sent_ns = now_ns();
    send_all(c->fd, out, (size_t)head + n);
}

static void next_request(struct conn *c)
{
    if (options.count && sent >= options.count)
        return;
    if (options.is_churn)
        c->verb = c->verb == CREATE ? END : CREATE;
    else if (n_names)
        memcpy(c->session, names[next_name++ % n_names], NAME_ROOM);
    send_request(c);
}

/* The name of the session just made: to be ended by `churn`, and kept for later runs. */
static void take_name(struct conn *c, const char *body)
{
    const char *at = strstr(body, "\"session_id\":\"");
    if (!at)
        return;
    at += strlen("\"session_id\":\"");
    snprintf(c->session, sizeof c->session, "%.*s", (int)strcspn(at, "\""), at);
    if (made)
        fprintf(made, "%s\n", c->session);
}

static void on_answer(struct conn *c, const char *body)
{
    uint64_t now = now_ns();
    const char *proof = verbs[c->verb].proof ? verbs[c->verb].proof : c->session;
    if (strncmp(c->in, verbs[c->verb].status, strlen(verbs[c->verb].status)) != 0)
        count_error("status", c->in);
    else if (!strstr(body, proof))
        count_error("another's answer", body);
    else if (c->verb == CREATE)
        take_name(c, body);
    answered++;
    if (now >= measure_from && now < measure_to) {
        latency_add(&latencies[c->verb], now - c->sent_ns);
        latency_add(&all, now - c->sent_ns);
    }
}

/* One answer is on the way at a time, so the buffer holds at most that one. */
static void on_readable(struct conn *c)
{
    char length[32];
    ssize_t got = recv(c->fd, c->in + c->n, MAX_ANSWER - c->n, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        fprintf(stderr, "connection closed by the subject after %llu calls\n",
                (unsigned long long)answered);
        exit(1);
    }
    c->n += (size_t)got;
    c->in[c->n] = '\0';
    char *end = strstr(c->in, "\r\n\r\n");
    if (!end || !header_value(c->in, "\r\ncontent-length:", length, sizeof length))
        return;
    if (c->n < (size_t)(end + 4 - c->in) + strtoul(length, NULL, 10))
        return;
    on_answer(c, end + 4);
    c->n = 0;
    next_request(c);
}

static void turn(int epoll)
{
    struct epoll_event events[256];
    int n = epoll_wait(epoll, events, 256, 100);
    for (int i = 0; i < n; i++)
        on_readable(events[i].data.ptr);
}

static void print_result(double seconds)
{
    printf("{\"calls\":%llu,\"errors\":%llu,\"seconds\":%.3f,\"per_s\":%.0f,\"p50_us\":%llu,"
           "\"p99_us\":%llu,\"kinds\":{",
           (unsigned long long)all.n, (unsigned long long)errors, seconds, (double)all.n / seconds,
           (unsigned long long)latency_percentile(&all, 0.5),
           (unsigned long long)latency_percentile(&all, 0.99));
    const char *comma = "";
    for (int i = 0; i < VERBS; i++) {
        if (!latencies[i].n)
            continue;
        printf("%s\"%s\":{\"calls\":%llu,\"per_s\":%.0f,\"p50_us\":%llu,\"p99_us\":%llu}", comma,
               verbs[i].name, (unsigned long long)latencies[i].n, (double)latencies[i].n / seconds,
               (unsigned long long)latency_percentile(&latencies[i], 0.5),
               (unsigned long long)latency_percentile(&latencies[i], 0.99));
        comma = ",";
    }
    printf("}}\n");
}

static void usage(void)
{
    fprintf(stderr, "usage: bench_rest PORT create|get|record|end|churn [--connections N] "
                    "[--seconds T] [--warmup T] [--count N] [--body B] [--ids FILE]\n");
    exit(2);
}

static void read_verb(const char *name)
{
    options.is_churn = strcmp(name, "churn") == 0;
    for (options.verb = 0; !options.is_churn && options.verb < VERBS; options.verb++)
        if (strcmp(name, verbs[options.verb].name) == 0)
            return;
    if (!options.is_churn)
        usage();
}

static void read_options(int argc, char **argv)
{
    if (argc < 3)
        usage();
    options.port = (int)strtol(argv[1], NULL, 10);
    read_verb(argv[2]);
    for (int i = 3; i + 1 < argc; i += 2) {
        double value = strtod(argv[i + 1], NULL);
        if (strcmp(argv[i], "--connections") == 0)
            options.connections = (unsigned)value;
        else if (strcmp(argv[i], "--seconds") == 0)
            options.seconds = value;
        else if (strcmp(argv[i], "--warmup") == 0)
            options.warmup = value;
        else if (strcmp(argv[i], "--count") == 0)
            options.count = (uint64_t)value;
        else if (strcmp(argv[i], "--body") == 0 && value <= MAX_BODY)
            options.body = (size_t)value;
        else if (strcmp(argv[i], "--ids") == 0)
            options.ids = argv[i + 1];
        else
            usage();
    }
}

static void open_names(void)
{
    static char line[NAME_ROOM];
    bool makes = options.verb == CREATE && !options.is_churn;
    if (!options.ids || options.is_churn) {
        if (!makes && !options.is_churn)
            usage();
        return;
    }
    FILE *file = fopen(options.ids, makes ? "w" : "r");
    if (!file) {
        perror(options.ids);
        exit(1);
    }
    if (makes) {
        made = file;
        return;
    }
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        names = realloc(names, (n_names + 1) * sizeof *names);
        if (!names)
            abort();
        memcpy(names[n_names++], line, sizeof line);
    }
    fclose(file);
}

/* Marks for who measures the subject's CPU: the clock starts and stops with these lines. */
static void mark(const char *what)
{
    printf("%s\n", what);
    fflush(stdout);
}

static double run_count(int epoll, uint64_t began)
{
    while (answered < options.count)
        turn(epoll);
    uint64_t took = now_ns() - began;
    mark("end");
    return (double)took / 1e9;
}

static double run_seconds(int epoll)
{
    measure_from = now_ns() + (uint64_t)(options.warmup * 1e9);
    measure_to = measure_from + (uint64_t)(options.seconds * 1e9);
    while (now_ns() < measure_from)
        turn(epoll);
    mark("begin");
    while (now_ns() < measure_to)
        turn(epoll);
    mark("end");
    return options.seconds;
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    memset(padding, 'q', sizeof padding);
    open_names();
    if (options.count && options.connections > options.count)
        options.connections = (unsigned)options.count;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct conn *conns = calloc(options.connections, sizeof *conns);
    if (!conns)
        abort();
    for (unsigned i = 0; i < options.connections; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &conns[i]};
        conns[i].fd = connect_local(options.port);
        conns[i].verb = options.is_churn ? END : options.verb;
        epoll_ctl(epoll, EPOLL_CTL_ADD, conns[i].fd, &event);
    }
    measure_to = UINT64_MAX;
    if (options.count)
        mark("begin");
    uint64_t began = now_ns();
    for (unsigned i = 0; i < options.connections; i++)
        next_request(&conns[i]);
    print_result(options.count ? run_count(epoll, began) : run_seconds(epoll));
    return errors != 0 || (made && fclose(made) != 0);
}
