/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the machine: the port, programs, disk, limits of the kernel. */
#include "cli/doctor.h"

#include "io/address.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The port. */

#define LISTEN_STATE 0x0a /* in /proc/net/tcp */

/* The inode of the socket that listens on this port; 0: none. */
static unsigned long listener_of(const char *table, unsigned port)
{
    FILE *file = fopen(table, "re");
    unsigned long inode = 0, found;
    unsigned local, state;
    char line[512];

    while (file && !inode && fgets(line, sizeof(line), file))
        if (sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*s %*s %lu", &local,
                   &state, &found) == 3 &&
            local == port && state == LISTEN_STATE)
            inode = found;
    if (file)
        fclose(file);
    return inode;
}

static bool has_socket(const char *pid, unsigned long inode)
{
    char path[PATH_MAX], name[64], target[64];
    bool found = false;

    snprintf(name, sizeof(name), "socket:[%lu]", inode);
    snprintf(path, sizeof(path), "/proc/%s/fd", pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && !found && (e = readdir(dir));) {
        snprintf(path, sizeof(path), "/proc/%s/fd/%s", pid, e->d_name);
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = '\0';
        found = strcmp(target, name) == 0;
    }
    if (dir)
        closedir(dir);
    return found;
}

/* The process with this socket; 0: not found, for instance of another user. */
static int holder_of(unsigned long inode)
{
    DIR *proc = opendir("/proc");
    int pid = 0;

    for (struct dirent *e; proc && !pid && (e = readdir(proc));)
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && has_socket(e->d_name, inode))
            pid = (int)strtol(e->d_name, NULL, 10);
    if (proc)
        closedir(proc);
    return pid;
}

static void name_of(int pid, char *ret, size_t size)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    FILE *file = fopen(path, "re");
    ret[0] = '\0';
    if (file && fgets(ret, (int)size, file))
        ret[strcspn(ret, "\n")] = '\0';
    if (file)
        fclose(file);
}

static void say_holder(struct doctor *d, struct str listen, unsigned long inode)
{
    int pid = inode ? holder_of(inode) : 0;
    char name[64];

    if (pid && pid == d->source.place.owner) {
        doctor_say(d, DOCTOR_OK, NULL, "Holdfast listens on %.*s (pid %d)", STR_ARG(listen), pid);
        return;
    }
    if (!pid) {
        doctor_say(d, DOCTOR_FAILURE,
                   "find it as root with `ss -ltnp`, end it, or set another \"listen\"",
                   "%.*s is held by a process of another user", STR_ARG(listen));
        return;
    }
    name_of(pid, name, sizeof(name));
    doctor_say(d, DOCTOR_FAILURE, "end that process, or set another \"listen\"",
               "%.*s is held by %s (pid %d), which is not the Holdfast of this data directory",
               STR_ARG(listen), name, pid);
}

void doctor_port(struct doctor *d)
{
    struct str listen = d->config ? d->config->listen : STR("127.0.0.1:4653");
    struct conn_address address;
    struct error err;
    int fd = -1;

    if (!address_parse(listen, &address, &err)) {
        doctor_say(d, DOCTOR_FAILURE, "set \"listen\" to HOST:PORT", "%s", err.text);
        return;
    }
    if (address_listen(&address, &fd, &err)) {
        close(fd);
        if (d->source.place.owner > 0)
            doctor_say(d, DOCTOR_WARNING,
                       "it was started with another --listen or configuration; `holdfast status` "
                       "names it",
                       "Holdfast runs (pid %d) but does not listen on %.*s", d->source.place.owner,
                       STR_ARG(listen));
        else
            doctor_say(d, DOCTOR_OK, NULL, "%.*s is free", STR_ARG(listen));
        return;
    }
    const char *colon = strrchr(listen.p, ':');
    unsigned port = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
    unsigned long inode = listener_of("/proc/net/tcp", port);
    if (!inode)
        inode = listener_of("/proc/net/tcp6", port);
    if (inode)
        say_holder(d, listen, inode);
    else
        doctor_say(d, DOCTOR_FAILURE, "set \"listen\" to an address of this machine", "%s",
                   err.text);
}

/* Programs. */

/* A variable of another process of this user, in mem; absent: it is not set, or cannot be read. */
static struct str variable_of(int pid, struct str name, struct arena *mem)
{
    char path[64];
    struct str value = STR_NONE;
    struct buf text;
    size_t n = 1;

    snprintf(path, sizeof(path), "/proc/%d/environ", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return STR_NONE;
    buf_init_secret(&text, 4u << 20);
    while (n && text.n < (2u << 20)) {
        n = fread(buf_room(&text, 65536), 1, 65536, file);
        buf_grown(&text, n);
    }
    fclose(file);
    for (struct str rest = buf_str(&text); rest.n && !value.p;) {
        struct str one = str_split(&rest, '\0');
        if (str_eq(str_split(&one, '='), name) && one.p)
            value = arena_dup(mem, one);
    }
    buf_release(&text);
    return value;
}

static bool find_program(struct str path, const char *name, char ret[PATH_MAX])
{
    while (path.n) {
        struct str dir = str_split(&path, ':');
        snprintf(ret, PATH_MAX, "%.*s/%s", STR_ARG(dir), name);
        if (dir.n && access(ret, X_OK) == 0)
            return true;
    }
    return false;
}

static bool is_used(const struct doctor *d, const char *name)
{
    for (size_t i = 0; d->config && i < d->config->n_servers; i++)
        if (str_eq(d->config->servers[i].command, str_of(name)))
            return true;
    return false;
}

/* `whose` names the owner of the PATH. */
static void look_for(struct doctor *d, struct str path, const char *name, const char *whose)
{
    struct str shell = str_of(getenv("PATH"));
    char found[PATH_MAX], other[PATH_MAX];

    if (find_program(path, name, found))
        doctor_say(d, DOCTOR_OK, NULL, "%s is %s", name, found);
    else if (is_used(d, name) && find_program(shell, name, other))
        doctor_say(d, DOCTOR_FAILURE,
                   arena_printf(d->mem,
                                "write \"command\": \"%s\", or start Holdfast from this shell: "
                                "`holdfast stop`, then `holdfast start`",
                                other)
                       .p,
                   "a server is started by %s, which is on the PATH of this shell, but not on "
                   "that of %s",
                   name, whose);
    else if (is_used(d, name))
        doctor_say(d, DOCTOR_FAILURE,
                   "install it, or name the program by its absolute path in the configuration",
                   "a server is started by %s, which is not on the PATH of %s", name, whose);
    else
        doctor_say(d, DOCTOR_OK, NULL, "%s is not on the PATH of %s, and no server uses it", name,
                   whose);
}

/* Servers get the PATH of the running Holdfast, unless their "env" has one. */
void doctor_path(struct doctor *d)
{
    static const char *const names[] = {"npx", "node", "uvx"};
    int pid = d->source.place.owner;
    struct str path = pid > 0 ? variable_of(pid, STR("PATH"), d->mem) : STR_NONE;
    const char *whose = path.p ? "the running Holdfast" : "this shell";

    if (!path.p)
        path = str_of(getenv("PATH"));
    for (size_t i = 0; i < countof(names); i++)
        look_for(d, path, names[i], whose);
}

/* Disk and limits. */

#define MIB (1024ull * 1024)
#define DISK_LOW (1024 * MIB)
#define DISK_FULL (100 * MIB)

void doctor_disk(struct doctor *d)
{
    struct str dir = d->source.place.data_dir;
    struct statvfs fs;

    if (!dir.p || !d->source.place.exists) {
        doctor_say(d, DOCTOR_OK, NULL, "there is no data directory yet; `holdfast up` makes it");
        return;
    }
    if (statvfs(dir.p, &fs) != 0) {
        doctor_say(d, DOCTOR_FAILURE, "check that the directory can be read",
                   "the file system of %.*s cannot be examined: %s", STR_ARG(dir), strerror(errno));
        return;
    }
    unsigned long long left = (unsigned long long)fs.f_bavail * fs.f_frsize;
    if (left < DISK_LOW)
        doctor_say(d, left < DISK_FULL ? DOCTOR_FAILURE : DOCTOR_WARNING,
                   "free space there: on a full disk Holdfast refuses every call",
                   "%.*s has %llu MiB left", STR_ARG(dir), left / MIB);
    else
        doctor_say(d, DOCTOR_OK, NULL, "%.*s has %llu GiB left", STR_ARG(dir), left / DISK_LOW);
}

static long long number_in(const char *path)
{
    FILE *file = fopen(path, "re");
    long long n = -1;

    if (file && fscanf(file, "%lld", &n) != 1)
        n = -1;
    if (file)
        fclose(file);
    return n;
}

#define WATCHES_LOW 8192
#define INSTANCES_LOW 64
#define FILES_LOW 4096

static void say_inotify(struct doctor *d, const char *name, const char *what, long long low,
                        const char *fix)
{
    char path[128];

    snprintf(path, sizeof(path), "/proc/sys/fs/inotify/%s", name);
    long long n = number_in(path);
    if (n >= 0)
        doctor_say(d, n < low ? DOCTOR_WARNING : DOCTOR_OK, n < low ? fix : NULL,
                   "inotify allows %lld %s per user", n, what);
}

/* The limit of the running Holdfast, which may have been started with another one; -1: not
 * known. */
static long long files_of(int pid)
{
    char path[64], line[256];
    long long soft = -1, hard = -1;

    snprintf(path, sizeof(path), "/proc/%d/limits", pid);
    FILE *file = pid > 0 ? fopen(path, "re") : NULL;
    while (file && hard < 0 && fgets(line, sizeof(line), file))
        if (sscanf(line, "Max open files %lld %lld", &soft, &hard) != 2)
            hard = -1;
    if (file)
        fclose(file);
    return hard;
}

void doctor_limits(struct doctor *d)
{
    long long files = files_of(d->source.place.owner);
    const char *whose = files >= 0 ? "the running Holdfast" : "a process";
    struct rlimit own;

    say_inotify(d, "max_user_watches", "watches", WATCHES_LOW,
                "raise it: sysctl fs.inotify.max_user_watches=65536; folders of documents with "
                "more directories are not watched");
    say_inotify(d, "max_user_instances", "instances", INSTANCES_LOW,
                "raise it: sysctl fs.inotify.max_user_instances=512; editors use the same ones");
    if (files < 0 && getrlimit(RLIMIT_NOFILE, &own) == 0)
        files = own.rlim_max > (rlim_t)LLONG_MAX ? LLONG_MAX : (long long)own.rlim_max;
    if (files >= 0 && files < FILES_LOW)
        doctor_say(d, DOCTOR_WARNING, "raise it with LimitNOFILE= of the unit, or ulimit -Hn 65536",
                   "%s may open %lld files; each client and each server needs some", whose, files);
    else if (files >= 0)
        doctor_say(d, DOCTOR_OK, NULL, "%s may open %lld files", whose, files);
}
