/* What a load takes after the program has walked so many bytes of its memory: from a set of 512 KiB in random order, in a huge page, as
 * the kernel maps memory. So it tells the latencies of the last-level cache and of memory, and how much of the cache other guests leave. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { LINE = 64, SET = 512 << 10, LINES = SET / LINE, HUGE = 2 << 20, MIB = 1 << 20, LARGEST = 512, TIMES = 31 };

static double nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static char *memory(size_t bytes)
{
    char *at = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    madvise(at, bytes, MADV_HUGEPAGE);
    memset(at, 1, bytes);
    return at;
}

static int compare(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(void)
{
    char *set = memory(HUGE), *walked = memory((size_t)LARGEST * MIB);
    static int order[LINES];
    for (int i = 0; i < LINES; i++) {
        int other = rand() % (i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    for (int i = 0; i < LINES; i++)
        *(void **)(set + LINE * order[i]) = set + LINE * order[(i + 1) % LINES];
    for (size_t mib = 2; mib <= LARGEST; mib *= 2) {
        double took[TIMES];
        for (int i = 0; i < TIMES; i++) {
            void **at = (void **)set;
            for (size_t byte = 0; byte < mib * MIB; byte += LINE)
                ((volatile char *)walked)[byte]++;
            double began = nanoseconds();
            for (int n = 0; n < LINES; n++)
                at = *at;
            took[i] = (nanoseconds() - began) / LINES;
            if (!at)
                return 1;
        }
        qsort(took, TIMES, sizeof *took, compare);
        printf("%zu MiB,%.1f,%.1f,%.1f\n", mib, took[TIMES / 4], took[TIMES / 2], took[TIMES * 3 / 4]);
    }
    return 0;
}
