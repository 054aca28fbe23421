/* calls LOOP ROUNDS ROOT: a process, bound to the last CPU, goes ROUNDS times through a loop of calls in a directory of 64 files of 16 KiB, which are
 * open, cached and synced. Prints the 10th percentile and the median of each call of the second half of the rounds, in nanoseconds.
 * create: a file is made and unlinked; link: the first file gets a name and loses it; rename: a file gets another name; mkdir: and rmdir. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 64, BYTES = 16384 };
static double *times[2];
static int counts[2], warm;
static unsigned serial;
static char paths[FILES][300], block[BYTES];

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
static int order(const void *a, const void *b) { double x = *(double *)a, y = *(double *)b; return (x > y) - (x < y); }
static void die(const char *what) { perror(what); exit(1); }
static void took(int call, double since, int result) {
    double time = now() - since;
    if (result < 0) die("call");
    if (warm) times[call][counts[call]++] = time;
}
static void fresh(char *path, const char *root) { snprintf(path, 300, "%s/d000a/f0000_%08u", root, serial++); }

static void turn(const char *loop, const char *root) {
    char path[300];
    fresh(path, root);
    double since = now();
    if (!strcmp(loop, "create")) {
        int fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0644);
        took(0, since, fd);
        close(fd);
        since = now();
        took(1, since, unlink(path));
    } else if (!strcmp(loop, "link")) {
        took(0, since, link(paths[0], path));
        since = now();
        took(1, since, unlink(path));
    } else if (!strcmp(loop, "rename")) {
        int file = serial * 37 % FILES;
        took(0, since, rename(paths[file], path));
        strcpy(paths[file], path);
    } else if (!strcmp(loop, "mkdir")) {
        took(0, since, mkdir(path, 0755));
        since = now();
        took(1, since, rmdir(path));
    } else die(loop);
}

int main(int argc, char **argv) {
    if (argc != 4) { fprintf(stderr, "calls create|link|rename|mkdir ROUNDS ROOT\n"); return 2; }
    int rounds = atoi(argv[2]);
    char path[300];
    cpu_set_t cpu; CPU_ZERO(&cpu); CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &cpu);
    if (sched_setaffinity(0, sizeof cpu, &cpu)) die("affinity");
    snprintf(path, sizeof path, "%s/d000a", argv[3]);
    if (mkdir(path, 0755)) die(path);
    for (int i = 0; i < FILES; i++) {
        fresh(paths[i], argv[3]);
        int fd = open(paths[i], O_CREAT | O_RDWR, 0644);
        if (fd < 0 || write(fd, block, BYTES) != BYTES) die(paths[i]);
    }
    sync();
    for (int call = 0; call < 2; call++) times[call] = malloc((rounds + 1) * sizeof(double));
    for (int i = 0; i < rounds; i++) { warm = i >= rounds / 2; turn(argv[1], argv[3]); }
    for (int call = 0; call < 2 && counts[call]; call++) {
        qsort(times[call], counts[call], sizeof(double), order);
        printf(",%.0f,%.0f", times[call][counts[call] / 10], times[call][counts[call] / 2]);
    }
    printf("\n");
    return 0;
}
