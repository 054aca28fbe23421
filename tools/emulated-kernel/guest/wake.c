/*
 * The scheduler without a filesystem.
 *
 * load wake PAIRS GROUPS SECONDS      hog and woken task on one CPU, in GROUPS (1 or 2) sessions; the waker has a CPU of
 *                                     its own. How long the woken task waits.
 * load chain TASKS TOKENS US SECONDS  TASKS in a ring pass TOKENS on; who has one computes for US microseconds.
 * load forks TASKS PERCENT US SECONDS TASKS that fork and exec a process of US microseconds and sleep, so that they
 *                                     would keep PERCENT of the CPUs busy. How long a process takes, beyond its own work.
 * load child US                       such a process.
 */
#include "load.h"
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_SAMPLES 20000
#define WAKE_PERIOD_US 1000 /* of the waker, plus a little that differs by pair, so that ticks are met at all phases */
#define WAKE_WORK 10000     /* instructions of the woken task */

static void futex_wait(volatile int *word, int value)
{
    syscall(SYS_futex, word, FUTEX_WAIT, value, 0, 0, 0);
}

static void futex_wake(volatile int *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, 0, 0, 0);
}

struct results {
    volatile int count; /* of operations; no more than MAX_SAMPLES have a sample */
    double sample[MAX_SAMPLES];
};

static void add_sample(struct results *r, double value)
{
    int at = __sync_fetch_and_add(&r->count, 1);
    if (at < MAX_SAMPLES)
        r->sample[at] = value;
}

static int samples(const struct results *r)
{
    return r->count < MAX_SAMPLES ? r->count : MAX_SAMPLES;
}

struct machine_time {
    double idle, all;
    long switches;
};

static struct machine_time machine_time(void)
{
    static char text[1 << 16];
    double t[8] = {0};
    struct machine_time m = {0, 0, 0};
    FILE *file = fopen("/proc/stat", "r");
    size_t got = file ? fread(text, 1, sizeof text - 1, file) : 0;
    char *at;
    text[got] = 0;
    if (!file || sscanf(text, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", t, t + 1, t + 2, t + 3, t + 4, t + 5, t + 6, t + 7) != 8)
        die("/proc/stat");
    fclose(file);
    for (int i = 0; i < 8; i++)
        m.all += t[i];
    m.idle = t[3] + t[4];
    at = strstr(text, "\nctxt ");
    m.switches = at ? atol(at + 6) : 0;
    return m;
}

static void stop_after(struct results *r, double seconds, struct machine_time *a, struct machine_time *b)
{
    usleep(100000);
    r->count = 0;
    *a = machine_time();
    usleep((useconds_t)(1e6 * seconds));
    *b = machine_time();
}

struct pair {
    volatile int word;
    volatile double woken;
};

static void hog(int cpu)
{
    pin(cpu);
    for (;;)
        burn(8000000);
}

static void woken(struct results *r, struct pair *p, int cpu, int own_group)
{
    int seen = p->word;
    if (own_group && setsid() < 0)
        die("setsid");
    pin(cpu);
    for (;;) {
        futex_wait(&p->word, seen);
        if (p->word == seen)
            continue;
        seen = p->word;
        add_sample(r, now() - p->woken);
        burn(WAKE_WORK);
    }
}

static void waker(struct pair *p, int cpu, int period_us)
{
    pin(cpu);
    for (;;) {
        usleep((useconds_t)period_us);
        p->woken = now();
        p->word++;
        futex_wake(&p->word);
    }
}

static int wake(int pairs, int groups, double seconds)
{
    struct results *r = shared_memory(sizeof *r);
    struct pair *p = shared_memory((size_t)pairs * sizeof *p);
    struct machine_time a, b;
    pid_t pids[MAX_TASKS];
    int n = 0;
    char head[64];
    for (int i = 0; i < pairs; i++) {
        if (!(pids[n++] = fork()))
            hog(i);
        if (!(pids[n++] = fork()))
            woken(r, p + i, i, groups == 2);
        if (!(pids[n++] = fork()))
            waker(p + i, pairs + i, WAKE_PERIOD_US + 37 * i);
    }
    stop_after(r, seconds, &a, &b);
    snprintf(head, sizeof head, "kind=wake pairs=%d groups=%d", pairs, groups);
    percentiles(head, r->sample, samples(r));
    while (n)
        kill(pids[--n], SIGKILL);
    return 0;
}

static void link_of_chain(struct results *r, volatile int *tokens, int tasks, int i, long instructions)
{
    volatile int *mine = tokens + 16 * i, *next = tokens + 16 * ((i + 1) % tasks);
    for (;;) {
        while (__sync_fetch_and_add(mine, 0) == 0)
            futex_wait(mine, 0);
        __sync_fetch_and_sub(mine, 1);
        burn(instructions);
        __sync_fetch_and_add(&r->count, 1);
        __sync_fetch_and_add(next, 1);
        futex_wake(next);
    }
}

static int chain(int tasks, int tokens, double us, double seconds)
{
    struct results *r = shared_memory(sizeof *r);
    volatile int *token = shared_memory((size_t)tasks * 64);
    struct machine_time a, b;
    pid_t pids[MAX_TASKS];
    for (int i = 0; i < tasks; i++)
        token[16 * i] = tokens * (i + 1) / tasks - tokens * i / tasks;
    for (int i = 0; i < tasks; i++)
        if (!(pids[i] = fork()))
            link_of_chain(r, token, tasks, i, (long)(1000 * us));
    stop_after(r, seconds, &a, &b);
    printf("RESULT kind=chain tasks=%d tokens=%d us=%g operations=%d rate=%.1f idle=%.3f switches=%.4f\n", tasks, tokens, us,
           r->count, r->count / seconds, 100 * (b.idle - a.idle) / (b.all - a.all),
           (double)(b.switches - a.switches) / r->count);
    fflush(stdout);
    for (int i = 0; i < tasks; i++)
        kill(pids[i], SIGKILL);
    return 0;
}

static void forker(struct results *r, int i, double us, double pause_us)
{
    char work[32];
    unsigned draw = 12345u + 977u * (unsigned)i;
    snprintf(work, sizeof work, "%.0f", us);
    for (;;) {
        double start = now(), half;
        spawn((char *[]){"load", "child", work, 0});
        add_sample(r, now() - start - 1e-6 * us);
        draw = draw * 1103515245u + 12345u;
        half = (double)(draw >> 16 & 1023) / 1023; /* pauses are even from 0 to twice their mean */
        if (pause_us > 0)
            usleep((useconds_t)(2 * half * pause_us));
    }
}

static int forks(int tasks, double percent, double us, double seconds)
{
    struct results *r = shared_memory(sizeof *r);
    struct machine_time a, b;
    pid_t pids[MAX_TASKS];
    double cpus = (double)sysconf(_SC_NPROCESSORS_ONLN), pause = us * (100 * tasks / (percent * cpus) - 1);
    char head[200];
    for (int i = 0; i < tasks; i++)
        if (!(pids[i] = fork()))
            forker(r, i, us, pause);
    stop_after(r, seconds, &a, &b);
    snprintf(head, sizeof head, "kind=forks tasks=%d percent=%g us=%g rate=%.1f idle=%.3f switches=%.4f", tasks, percent, us,
             r->count / seconds, 100 * (b.idle - a.idle) / (b.all - a.all), (double)(b.switches - a.switches) / r->count);
    percentiles(head, r->sample, samples(r));
    for (int i = 0; i < tasks; i++)
        kill(pids[i], SIGKILL);
    return 0;
}

int wake_main(int argc, char **argv)
{
    if (argc == 5 && !strcmp(argv[1], "wake"))
        return wake(atoi(argv[2]), atoi(argv[3]), atof(argv[4]));
    if (argc == 6 && !strcmp(argv[1], "chain"))
        return chain(atoi(argv[2]), atoi(argv[3]), atof(argv[4]), atof(argv[5]));
    if (argc == 6 && !strcmp(argv[1], "forks"))
        return forks(atoi(argv[2]), atof(argv[3]), atof(argv[4]), atof(argv[5]));
    if (argc == 3 && !strcmp(argv[1], "child")) {
        burn((long)(1000 * atof(argv[2])));
        return 0;
    }
    fprintf(stderr, "usage: see load.c and wake.c\n");
    return 2;
}
