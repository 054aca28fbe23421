/*
 * One compilation as three processes: the driver runs the compiler and the assembler. What each does, and how far into
 * its CPU time, is that of models/workloads/compile.yaml; user time is instructions, page faults are spread evenly.
 */
#include "load.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define USER_INSTRUCTIONS 10500000
#define HEADERS 20
#define ASM_BYTES 465
#define OBJECT_WRITES 7
#define OBJECT_BYTES 193 /* each */

static struct {
    char *pages;
    long faults, faulted, instructions;
    double done;
} process;

static void begin(double share, long faults)
{
    process.instructions = (long)(share * (double)parameter("USER", USER_INSTRUCTIONS));
    process.faults = faults;
    process.pages = mmap(0, (size_t)(faults + 1) * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (process.pages == MAP_FAILED)
        die("mmap");
}

/* Compute until this share of the process's work is done. */
static void work_until(double share)
{
    long target = (long)(share * (double)process.faults), pieces = target - process.faulted;
    long each;
    if (pieces < 1)
        pieces = 1;
    each = (long)((double)process.instructions * (share - process.done)) / pieces;
    for (long i = 0; i < pieces; i++) {
        burn(each);
        if (process.faulted < target)
            process.pages[process.faulted++ * 4096] = 1;
    }
    process.done = share;
}

static int must_open(const char *name, int flags)
{
    int fd = open(name, flags, 0644);
    if (fd < 0)
        die(name);
    return fd;
}

static void must_write(int fd, size_t bytes)
{
    static char data[512];
    memset(data, 'x', sizeof data);
    if (write(fd, data, bytes) != (ssize_t)bytes)
        die("write");
}

static int driver(const char *dir, char *object)
{
    char assembly[160];
    struct stat status;
    begin(.087, parameter("FAULTS_DRIVER", 100));
    work_until(.694);
    snprintf(assembly, sizeof assembly, "%s/cc%06d.s", dir, getpid());
    close(must_open(assembly, O_RDWR | O_CREAT | O_EXCL));
    work_until(.73);
    spawn((char *[]){"load", "compiler", assembly, 0});
    work_until(.824);
    spawn((char *[]){"load", "assembler", assembly, object, 0});
    work_until(.951);
    if (stat(assembly, &status) || unlink(assembly))
        die(assembly);
    work_until(1);
    return 0;
}

static void read_headers(void)
{
    char name[64], data[400];
    struct stat status;
    for (int i = 0; i < HEADERS; i++) {
        int fd;
        snprintf(name, sizeof name, "/include/none/h%d.h", i);
        if (open(name, O_RDONLY) >= 0)
            die(name);
        snprintf(name, sizeof name, "/include/h%d.h", i);
        fd = must_open(name, O_RDONLY);
        if (fstat(fd, &status) || read(fd, data, sizeof data) < 0)
            die(name);
        close(fd);
    }
}

static int compiler(const char *assembly)
{
    int fd;
    begin(.808, parameter("FAULTS_COMPILER", 500));
    work_until(.21);
    read_headers();
    work_until(.357);
    fd = must_open(assembly, O_WRONLY | O_CREAT | O_TRUNC);
    work_until(.985);
    must_write(fd, ASM_BYTES);
    close(fd);
    work_until(1);
    return 0;
}

static int assembler(const char *assembly, const char *object)
{
    char data[512];
    int in, out;
    begin(.105, parameter("FAULTS_ASSEMBLER", 120));
    work_until(.649);
    unlink(object);
    work_until(.665);
    out = must_open(object, O_RDWR | O_CREAT | O_TRUNC);
    work_until(.842);
    in = must_open(assembly, O_RDONLY);
    while (read(in, data, sizeof data) > 0)
        continue;
    close(in);
    for (int i = 0; i < OBJECT_WRITES; i++) {
        work_until(.955 + .005 * i);
        must_write(out, OBJECT_BYTES);
    }
    close(out);
    work_until(1);
    return 0;
}

int compile_role(char **argv)
{
    if (!strcmp(argv[1], "driver"))
        return driver(argv[2], argv[3]);
    if (!strcmp(argv[1], "compiler"))
        return compiler(argv[2]);
    return assembler(argv[2], argv[3]);
}

void compile_operation(const char *dir, int task, long n)
{
    char object[160], directory[128];
    (void)n;
    snprintf(directory, sizeof directory, "%s", dir);
    snprintf(object, sizeof object, "%s/hello%d.o", dir, task);
    spawn((char *[]){"load", "driver", directory, object, 0});
}
