/* names fill FILES ROOT: a directory is filled with FILES names. names turn ROUNDS ROOT: ROUNDS times a name is made and unlinked in it. Bound to the last CPU. Prints the 10th percentile and the median, in nanoseconds, of creates in the last tenth of the filling, or of
 * creates and unlinks of the second half of the rounds. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILL, CREATE, UNLINK, KINDS };
static double *times[KINDS];
static int counts[KINDS];

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
static int warm;
static void add(int kind, double since) { double took = now() - since; if (warm) times[kind][counts[kind]++] = took; }
static int order(const void *a, const void *b) { double x = *(double *)a, y = *(double *)b; return (x > y) - (x < y); }
static void die(const char *what) { perror(what); exit(1); }

static void create(int kind, const char *path) {
    double since = now();
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);
    if (fd < 0) die(path);
    add(kind, since);
    close(fd);
}

static void fill(const char *root, int files) {
    char path[300];
    snprintf(path, sizeof path, "%s/d", root);
    if (mkdir(path, 0755)) die(path);
    for (int i = 0; i < files; i++) {
        snprintf(path, sizeof path, "%s/d/f%08d", root, i);
        warm = i >= files / 10 * 9;
        create(FILL, path);
    }
}

static void turn(const char *root, int rounds) {
    char path[300];
    for (int i = 0; i < rounds; i++) {
        snprintf(path, sizeof path, "%s/d/g%08d", root, i);
        warm = i >= rounds / 2;
        create(CREATE, path);
        double since = now();
        if (unlink(path)) die(path);
        add(UNLINK, since);
    }
}

int main(int argc, char **argv) {
    if (argc != 4) { fprintf(stderr, "names fill|turn COUNT ROOT\n"); return 2; }
    int count = atoi(argv[2]);
    cpu_set_t cpu; CPU_ZERO(&cpu); CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &cpu);
    if (sched_setaffinity(0, sizeof cpu, &cpu)) die("affinity");
    for (int kind = 0; kind < KINDS; kind++) times[kind] = malloc((count + 1) * sizeof(double));
    (strcmp(argv[1], "fill") ? turn : fill)(argv[3], count);
    for (int kind = 0; kind < KINDS; kind++) {
        if (!counts[kind]) continue;
        qsort(times[kind], counts[kind], sizeof(double), order);
        printf(",%.0f,%.0f", times[kind][counts[kind] / 10], times[kind][counts[kind] / 2]);
    }
    return 0;
}
