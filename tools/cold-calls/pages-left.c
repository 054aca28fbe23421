/* What an unlink takes after the program has mapped, touched and unmapped so many pages: since Linux 6.14 pages that a CPU has not put on
 * the list of pages yet stay with it, and who drops a page of a file puts them there and frees them.
 *
 *     pages-left DIRECTORY
 *
 * Prints medians in microseconds: pages, unlink of a file with a page, unlink of an empty file. Bind it to a CPU. */
#define _GNU_SOURCE
#include "before.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SETTLE = 20, TURNS = 300 };

static void map_and_unmap(size_t pages)
{
    if (!pages)
        return;
    char *at = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(at == MAP_FAILED, "mmap");
    madvise(at, pages * PAGE, MADV_NOHUGEPAGE);
    for (size_t page = 0; page < pages; page++)
        at[page * PAGE] = 1;
    munmap(at, pages * PAGE);
}

static double unlink_takes(const char *path, size_t pages, int written)
{
    static double took[TURNS];
    for (int i = -SETTLE; i < TURNS; i++) {
        map_and_unmap(pages);
        int fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
        check(fd < 0 || (written && write(fd, "hello", 5) != 5), path);
        close(fd);
        double before = microseconds();
        check(unlink(path), path);
        if (i >= 0)
            took[i] = microseconds() - before;
    }
    qsort(took, TURNS, sizeof *took, compare);
    return took[TURNS / 2];
}

int main(int argc, char **argv)
{
    static const size_t pages[] = {0, 1, 8, 16, 24, 30, 31, 39, 47, 55, 61, 62, 100, 200, 400};
    char path[300];
    if (argc != 2) {
        fprintf(stderr, "pages-left DIRECTORY\n");
        return 2;
    }
    snprintf(path, sizeof path, "%s/file", argv[1]);
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        printf("%zu,%.2f,%.2f\n", pages[i], unlink_takes(path, pages[i], 1), unlink_takes(path, pages[i], 0));
    return 0;
}
