/* Readers and writers of one file as kinds: of the tasks of `readers:N` the first N read, all others write; each task of
 * `randrw` draws what it does. */
#include "load.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGES 4096

static char page[4096];
int readers;
static int file;
static unsigned seed;

static void prepare_file(const char *dir, int task)
{
    char name[160];
    snprintf(name, sizeof name, "%s/one", dir);
    file = open(name, O_RDWR | O_CREAT, 0644);
    seed = (unsigned)task + 1;
    for (int i = 0; file >= 0 && task == 0 && i < PAGES; i++)
        if (write(file, page, sizeof page) != sizeof page)
            die(name);
    if (file < 0)
        die(name);
}

static void once(int reads)
{
    off_t at;
    seed = seed * 1664525u + 1013904223u;
    at = 4096L * (seed >> 20);
    if ((reads ? pread(file, page, sizeof page, at) : pwrite(file, page, sizeof page, at)) != sizeof page)
        die("page");
}

static void read_or_write(const char *dir, int task, long n)
{
    (void)dir, (void)n;
    once(task < readers);
}

static void draw(const char *dir, int task, long n)
{
    (void)dir, (void)task, (void)n;
    once(seed >> 19 & 1);
}

static struct kind mixed = {0, prepare_file, read_or_write}, drawn = {"randrw", prepare_file, draw};

const struct kind *readers_kind(const char *name)
{
    if (!strcmp(name, drawn.name))
        return &drawn;
    if (strncmp(name, "readers:", 8))
        return 0;
    readers = atoi(name + 8);
    mixed.name = name;
    return &mixed;
}
