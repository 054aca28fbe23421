/* What single events cost, in nanoseconds of the emulated clock. One MICRO line each. */
#include "load.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNS 20000
#define WAKES 500

static void tell(const char *name, double seconds, long n)
{
    printf("MICRO %s=%.1f\n", name, 1e9 * seconds / (double)n);
    fflush(stdout);
}

static void calls(void)
{
    double t = now();
    volatile int word = 0;
    burn(100000000);
    tell("thousand_instructions", now() - t, 100000);
    t = now();
    for (int i = 0; i < TURNS; i++)
        syscall(SYS_getppid);
    tell("syscall", now() - t, TURNS);
    t = now();
    for (int i = 0; i < TURNS; i++)
        now();
    tell("clock_read", now() - t, TURNS);
    t = now();
    for (int i = 0; i < TURNS; i++)
        syscall(SYS_futex, &word, FUTEX_WAKE, 1, 0, 0, 0);
    tell("futex_wake_call", now() - t, TURNS);
    t = now();
    for (int i = 0; i < TURNS; i++)
        sched_yield();
    tell("yield_alone", now() - t, TURNS);
}

static void faults(void)
{
    char *p = mmap(0, 4096 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double t = now();
    for (int i = 0; i < 4096; i++)
        p[4096L * i] = 1;
    tell("fault", now() - t, 4096);
}

static void yield_to_other(const char *name)
{
    double t;
    usleep(20000);
    t = now();
    for (int i = 0; i < TURNS; i++)
        sched_yield();
    tell(name, (now() - t) / 2, TURNS);
}

static atomic_int stopped;

static void *yield_always(void *unused)
{
    while (!stopped)
        sched_yield();
    return unused;
}

/* Two processes, and two threads of one, on CPU 0 that do nothing but give way. */
static void yields(void)
{
    pthread_t thread;
    pid_t other = fork();
    if (other == 0)
        yield_always(0);
    yield_to_other("yield_switch");
    kill(other, SIGKILL);
    waitpid(other, 0, 0);
    if (pthread_create(&thread, 0, yield_always, 0))
        die("pthread_create");
    yield_to_other("yield_switch_threads");
    stopped = 1;
    pthread_join(thread, 0);
}

struct woken {
    volatile int word, ready;
    volatile double called, ran;
};

/* A wake-up of a task that sleeps on the CPU, after so many microseconds: the call, and until the sleeper runs. */
static void wakes(int cpu, int pause_us, const char *call, const char *run)
{
    struct woken *w = shared_memory(sizeof *w);
    double calling = 0, running = 0;
    pid_t other = fork();
    if (other == 0) {
        pin(cpu);
        for (int seen = 0;; seen++) {
            while (w->word == seen)
                syscall(SYS_futex, &w->word, FUTEX_WAIT, seen, 0, 0, 0);
            w->ran = now();
            w->ready = seen + 1;
        }
    }
    usleep(20000);
    for (int i = 0; i < WAKES; i++) {
        double before, after;
        if (cpu)
            burn(1000L * pause_us);
        else
            usleep((useconds_t)pause_us);
        before = now();
        w->word = i + 1;
        syscall(SYS_futex, &w->word, FUTEX_WAKE, 1, 0, 0, 0);
        after = now();
        while (w->ready != i + 1)
            if (cpu == 0)
                sched_yield();
        calling += after - before;
        running += w->ran - before;
    }
    if (call)
        tell(call, calling, WAKES);
    tell(run, running, WAKES);
    kill(other, SIGKILL);
    waitpid(other, 0, 0);
}

static void pipe_ping_pong(void)
{
    int there[2], back[2];
    char byte = 0;
    double t;
    pid_t other;
    if (pipe(there) || pipe(back))
        die("pipe");
    other = fork();
    if (other == 0)
        while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
            continue;
    t = now();
    for (int i = 0; i < TURNS / 10; i++)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            die("pipe");
    tell("pipe_turn", (now() - t) / 2, TURNS / 10);
    kill(other, SIGKILL);
    waitpid(other, 0, 0);
}

/* As `simfs measure` does it. */
static void pipe_alone(void)
{
    int both[2];
    char byte = 0;
    double t;
    if (pipe(both))
        die("pipe");
    t = now();
    for (int i = 0; i < TURNS; i++)
        if (write(both[1], &byte, 1) != 1 || read(both[0], &byte, 1) != 1)
            die("pipe");
    tell("pipe_alone", now() - t, TURNS);
}

/* What ticks take from a task that computes: a second of it, less its instructions. */
static void ticks(void)
{
    double t = now();
    burn(1000000000L);
    tell("ticks_of_a_second", now() - t - 1, 1);
}

int micro_main(void)
{
    pin(0);
    calls();
    faults();
    yields();
    pipe_alone();
    pipe_ping_pong();
    wakes(0, 50, 0, "futex_wake_same_cpu");
    wakes(1, 5, "futex_wake_idle_call", "futex_wake_idle_run");
    wakes(1, 200, "futex_wake_long_idle_call", "futex_wake_long_idle_run");
    ticks();
    return 0;
}
