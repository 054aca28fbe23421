/* What loads take whose pages' translations are missing: a chain of loads, a line in each page or all lines side by side, after the
 * program has used a line of each of so many other pages, or has walked so many bytes. In huge pages, as the kernel maps memory,
 * translations are missing only where a host maps pages of 4 KiB.
 *
 * Prints 5th percentiles and medians in ns a load. Bind it to a CPU. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { LINE = 64, PAGE = 4096, LOADS = 512, HUGE = 2 << 20, MIB = 1 << 20, LARGEST = 64 * MIB, TIMES = 101 };

static double nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static char *memory(size_t bytes, int advice)
{
    char *at = mmap(0, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    at = (char *)(((uintptr_t)at + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
    madvise(at, bytes, advice);
    memset(at, 1, bytes);
    return at;
}

static int compare(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* A chain through `set` in random order: a line of each page, each time another one of it, or lines side by side. */
static void **link_up(char *set, int apart)
{
    static int order[LOADS];
    char *at[LOADS];
    for (int i = 0; i < LOADS; i++) {
        int other = rand() % (i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    for (int i = 0; i < LOADS; i++)
        at[i] = set + (apart ? order[i] * PAGE + order[i] * 7 % (PAGE / LINE) * LINE : order[i] * LINE);
    for (int i = 0; i < LOADS; i++)
        *(void **)at[i] = at[(i + 1) % LOADS];
    return (void **)at[0];
}

static void measure(char *set, int apart, char *walked, size_t bytes, size_t step)
{
    double took[TIMES];
    void **first = link_up(set, apart);
    for (int i = 0; i < TIMES; i++) {
        void **at = first;
        for (int n = 0; n < LOADS; n++)
            at = *at;
        for (size_t byte = 0; byte < bytes; byte += step)
            ((volatile char *)walked)[byte]++;
        double began = nanoseconds();
        for (int n = 0; n < LOADS; n++)
            at = *at;
        took[i] = (nanoseconds() - began) / LOADS;
        if (!at)
            exit(1);
    }
    qsort(took, TIMES, sizeof *took, compare);
    printf(",%s,%zu,%zu,%.1f,%.1f\n", apart ? "a page each" : "side by side", bytes, step, took[TIMES / 20], took[TIMES / 2]);
}

int main(void)
{
    char *walked = memory(LARGEST, MADV_NOHUGEPAGE);
    printf("pages,lines,bytes walked,a line in each,5th percentile,median\n");
    for (int huge = 1; huge >= 0; huge--) {
        char *set = memory((size_t)LOADS * PAGE, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
        for (int apart = 1; apart >= 0; apart--) {
            for (size_t pages = 1024; pages <= 8192; pages *= 2) {
                printf("%s", huge ? "huge" : "4 KiB");
                measure(set, apart, walked, pages * PAGE, PAGE + LINE);
            }
            for (size_t bytes = 0; bytes <= LARGEST; bytes = bytes ? bytes * 2 : MIB) {
                printf("%s", huge ? "huge" : "4 KiB");
                measure(set, apart, walked, bytes, LINE);
            }
        }
    }
    return 0;
}
