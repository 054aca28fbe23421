/* One task's operations, while the emulator logs every block of instructions (laboratory/blocks.py). */
#include "load.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SETTLE 40           /* operations before the log */
#define SMALL 465           /* bytes of a small file, as in the data set guest-cold */

static char page[4096] __attribute__((aligned(4096)));

static int create(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd < 0)
        die(name);
    return fd;
}

static void check(int failed, const char *what)
{
    if (failed)
        die(what);
}

static void write_bytes(int fd, size_t bytes)
{
    check(write(fd, page, bytes) != (ssize_t)bytes, "write");
}

static void write_page(int fd)
{
    write_bytes(fd, sizeof page);
}

/* What an operation finds there: names of its own. */
static void prepare(const char *kind, const char *dir, const char *prefix, long names, long operations)
{
    char name[160];
    int own = !strncmp(kind, "unlink", 6);
    for (long i = 0; i < names; i++) {
        snprintf(name, sizeof name, "%s/%s%07ld", dir, prefix, i);
        close(create(name));
    }
    for (long i = 0; own && i < operations; i++) {
        int fd;
        snprintf(name, sizeof name, "%s/x%07ld", dir, i);
        fd = create(name);
        if (!strcmp(kind, "unlink_written"))
            write_page(fd);
        close(fd);
    }
}

static void operation(const char *kind, const char *dir, long n)
{
    char name[160];
    snprintf(name, sizeof name, "%s/x%07ld", dir, n);
    if (!strcmp(kind, "create")) {
        close(create(name));
    } else if (!strcmp(kind, "create_unlink") || !strcmp(kind, "tmpfile") || !strcmp(kind, "small_file")) {
        int fd = create(name);
        if (*kind == 't')
            write_page(fd);
        if (*kind == 's')
            write_bytes(fd, SMALL);
        close(fd);
        check(unlink(name), name);
    } else if (!strncmp(kind, "unlink", 6)) {
        check(unlink(name), name);
    } else {
        check(strcmp(kind, "mkdir") || mkdir(name, 0755), kind);
    }
}

/* loop-KIND: as in files.c or operations.c, with that loop's user code. */
static const struct kind *looped(const char *kind)
{
    const struct kind *of = file_kinds;
    if (strncmp(kind, "loop-", 5))
        return 0;
    if (operation_kind(kind + 5))
        return operation_kind(kind + 5);
    while (of->name && strcmp(of->name, kind + 5))
        of++;
    check(!of->name, kind);
    return of;
}

static void operations(const char *kind, const char *dir, long from, long to)
{
    const struct kind *of = looped(kind);
    for (long i = from; i < to; i++)
        if (of)
            of->operation(dir, 0, i);
        else
            operation(kind, dir, i);
}

/* The journal, and what it leaves to be written: a freeze waits for both. */
static void write_back(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    check(fd < 0 || syncfs(fd), dir);
    if (!ioctl(fd, FIFREEZE, 0))
        check(ioctl(fd, FITHAW, 0), "FITHAW");
    close(fd);
    usleep(30000);
}

/* steps KIND DIR NAMES OPERATIONS PREFIX, of the names that are there before: the log goes on after the last operation, for what workers do. */
int steps_main(int argc, char **argv)
{
    const char *kind = argv[2];
    char dir[128];
    long count;
    double began, took;
    if (argc != 7)
        return 2;
    count = atol(argv[5]);
    snprintf(dir, sizeof dir, "%s%s", argv[3], strncmp(kind, "loop-own:", 9) ? "/d0" : ""); /* a directory for each task */
    check(mkdir(dir, 0755) && errno != EEXIST, dir);
    prepare(kind, dir, argv[6], atol(argv[4]), SETTLE + count);
    if (looped(kind) && looped(kind)->prepare)
        looped(kind)->prepare(dir, 0);
    sync();
    operations(kind, dir, 0, SETTLE);
    tracing(1);
    log_blocks(1);
    began = now();
    operations(kind, dir, SETTLE, SETTLE + count);
    took = now() - began;
    write_back(dir);
    log_blocks(0);
    tracing(0);
    printf("RESULT kind=%s names=%s prefix=%s operations=%ld ns=%.1f\n", kind, argv[4], argv[6], count,
           1e9 * took / (double)count);
    return 0;
}
