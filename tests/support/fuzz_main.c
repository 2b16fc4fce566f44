/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over files without libFuzzer: every file, or every file of every directory,
 * named on the command line is fed once, then the empty input.  This is how a corpus becomes an
 * ordinary test; a finding is a crash or a sanitizer's report.  A corpus that does not exist counts
 * as empty, so a new target needs no seeds to build. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int feed_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    if (!file || fstat(fileno(file), &info) != 0) {
        perror(path);
        return 1;
    }
    /* An exact allocation: one byte read too many is seen by the sanitizer. */
    size_t size = (size_t)info.st_size;
    uint8_t *data = malloc(size ? size : 1);
    if (!data || fread(data, 1, size, file) != size) {
        perror(path);
        return 1;
    }
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

static int feed_directory(const char *path, DIR *dir, unsigned *count)
{
    const struct dirent *entry;
    int failed = 0;
    while ((entry = readdir(dir)) != NULL) {
        char file[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        failed |= feed_file(file);
        ++*count;
    }
    return failed;
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        if (dir) {
            failed |= feed_directory(argv[i], dir, &count);
            closedir(dir);
        } else if (errno == ENOTDIR) {
            failed |= feed_file(argv[i]);
            count++;
        }
    }
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    printf("%u inputs\n", count);
    return failed;
}
