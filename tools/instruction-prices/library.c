/* library [CPU]: what instructions of ordinary code take, in ns: twelve parts of the C library, each in a loop of its own, whose code an L1
 * holds, and in sequence, where it does not. Prints their 5th percentiles in microseconds, the sum of the parts and the sequence.
 * library --run PART TIMES (0 is the sequence): how many instructions and lines of code that is says
 * valgrind --tool=cachegrind --cache-sim=yes --I1=32768,8,64, as the difference of two numbers of TIMES.
 * gcc -O2 -Wl,-z,now -o library library.c */
#define _GNU_SOURCE
#include <argz.h>
#include <arpa/inet.h>
#include <fnmatch.h>
#include <sched.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wordexp.h>

enum { PARTS = 12, LOOPS = 3000, WARM = 4, TIMES = 10, NUMBERS = 20, WORDS = 5 };

static char text[400], *const words[WORDS] = {"one", "two", "three", "four", "five"};

static int by_value(const void *one, const void *other) { return *(const int *)one - *(const int *)other; }
static int by_name(const void *one, const void *other) { return strcmp(one, other); }

static void matches(void) { fnmatch("*.[ch]", "directory/file.c", 0); }
static void reads_time(void) { struct tm about = {0}; strptime("2026-11-27 10:11:12", "%Y-%m-%d %H:%M:%S", &about); }
static void prints_whole(void) { snprintf(text, sizeof text, "%d %s %lx %c", 5, "five", 255l, 'x'); }
static void prints_real(void) { snprintf(text, sizeof text, "%.5g %10.3f", 3.14159, 2.5e3); }

static void prints_time(void)
{
    struct tm about = {.tm_year = 126, .tm_mday = 3};
    time_t then = timegm(&about);
    gmtime_r(&then, &about);
    strftime(text, sizeof text, "%a %b %d %j %U %H:%M:%S %Y", &about);
}

static void scans(void)
{
    double real;
    int whole;
    char word[40];
    sscanf("17 2.5e-3 word", "%d %lf %s", &whole, &real, word);
}

static void converts_address(void)
{
    unsigned char address[16];
    inet_pton(AF_INET6, "fe80::1:2", address);
    inet_ntop(AF_INET6, address, text, sizeof text);
}

static void prints_file(void)
{
    FILE *file = fmemopen(text, sizeof text, "w");
    fprintf(file, "%d", 3);
    fclose(file);
}

static void sorts(void)
{
    int numbers[NUMBERS];
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = i * 7 % NUMBERS;
    qsort(numbers, NUMBERS, sizeof *numbers, by_value);
}

static void fills_tree(void)
{
    void *root = 0;
    for (int i = 0; i < WORDS; i++)
        tsearch(words[i], &root, by_name);
    for (int i = 0; i < WORDS; i++)
        tdelete(words[i], &root, by_name);
}

static void joins(void)
{
    char *parts;
    size_t length;
    argz_create_sep("a:b:c", ':', &parts, &length);
    argz_stringify(parts, length, ',');
    free(parts);
}

static void expands(void)
{
    wordexp_t expanded;
    if (!wordexp("a ${HOME}/b 'c d'", &expanded, WRDE_NOCMD))
        wordfree(&expanded);
}

static void (*const parts[PARTS])(void) = {matches, reads_time, prints_time, prints_whole, prints_real, scans, converts_address,
                                           prints_file, sorts, fills_tree, joins, expands};

static void run(int part, int times)
{
    for (int i = 0; i < times; i++)
        for (int p = part ? part - 1 : 0; p < (part ? part : PARTS); p++)
            parts[p]();
}

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return 1e6 * (double)at.tv_sec + 1e-3 * (double)at.tv_nsec;
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static double took[PARTS + 1][LOOPS];
    double sum = 0;
    cpu_set_t here;
    if (argc == 4 && !strcmp(argv[1], "--run"))
        return run(atoi(argv[2]), atoi(argv[3])), 0;
    CPU_ZERO(&here);
    CPU_SET(argc > 1 ? atoi(argv[1]) : 0, &here);
    if (sched_setaffinity(0, sizeof here, &here))
        return 2;
    for (int i = 0; i < LOOPS; i++)
        for (int part = 0; part <= PARTS; part++) {
            run(part, WARM);
            double began = now();
            run(part, TIMES);
            took[part][i] = (now() - began) / TIMES;
        }
    for (int part = 0; part <= PARTS; part++) {
        qsort(took[part], LOOPS, sizeof(double), rising);
        sum += part ? took[part][LOOPS / 20] : 0;
    }
    printf("each by itself %.3f us, in sequence %.3f us\n", sum, took[0][LOOPS / 20]);
    return 0;
}
