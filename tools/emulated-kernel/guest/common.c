/* What all loads use. */
#include "load.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define LOG_LEAF 0x70746c67 /* CPUID: parallel-time.patch */

void die(const char *what)
{
    perror(what);
    _exit(99);
}

void log_blocks(int on)
{
    unsigned a = LOG_LEAF, b, c = (unsigned)on, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d) : : "memory");
}

void end_of_boot(void)
{
    log_blocks(2);
}

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Rounds of 100 instructions without memory accesses. */
void burn(long instructions)
{
    long rounds = instructions / 100;
    if (rounds <= 0)
        return;
    __asm__ volatile("1:\n"
                     ".rept 98\n add $3, %%rax\n .endr\n"
                     "dec %0\n jnz 1b\n"
                     : "+r"(rounds) : : "rax", "cc");
}

void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        die("sched_setaffinity");
}

void *shared_memory(unsigned long size)
{
    void *p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (p == MAP_FAILED)
        die("mmap");
    return p;
}

long parameter(const char *name, long otherwise)
{
    const char *value = getenv(name);
    return value ? atol(value) : otherwise;
}

void spawn(char *const argv[])
{
    int status;
    pid_t child = vfork();
    if (child == 0) {
        execve("/load", argv, environ);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0 || status)
        die("child");
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One RESULT line: microseconds. */
void percentiles(const char *head, double *v, int n)
{
    double sum = 0;
    int late = 0;
    if (n == 0)
        return;
    qsort(v, (size_t)n, sizeof *v, ascending);
    for (int i = 0; i < n; i++) {
        sum += v[i];
        late += v[i] > 300e-6;
    }
    printf("RESULT %s n=%d mean_us=%.3f p50_us=%.3f p90_us=%.3f p99_us=%.3f max_us=%.3f late_percent=%.2f\n",
           head, n, 1e6 * sum / n, 1e6 * v[n / 2], 1e6 * v[n * 9L / 10], 1e6 * v[n * 99L / 100],
           1e6 * v[n - 1], 100.0 * late / n);
    fflush(stdout);
}
