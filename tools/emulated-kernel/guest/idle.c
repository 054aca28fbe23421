/* A wake-up by how long ago its sleeper went to sleep, on a CPU that has nothing else to do. */
#include "load.h"
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_TURNS 100000

struct waits {
    volatile int word, ready;            /* turns woken, turns begun */
    volatile double asleep[MAX_TURNS];   /* when the sleeper asks to sleep */
    volatile double ran[MAX_TURNS];      /* when it is back in its program */
};

static void sleeper(struct waits *w)
{
    pin(1);
    for (int turn = 0; turn < MAX_TURNS; turn++) {
        w->asleep[turn] = now();
        w->ready = turn + 1;
        while (w->word == turn)
            syscall(SYS_futex, &w->word, FUTEX_WAIT, turn, 0, 0, 0);
        w->ran[turn] = now();
    }
    pause();
}

/* Wakes the sleeper so many seconds after it asked to sleep; how long it took until it ran, or less than 0 if it was not asleep. */
static double wake_after(struct waits *w, int turn, double seconds, double *called)
{
    double before;
    long woken;
    while (w->ready <= turn || now() < w->asleep[turn] + seconds)
        continue;
    before = now();
    w->word = turn + 1;
    woken = syscall(SYS_futex, &w->word, FUTEX_WAKE, 1, 0, 0, 0);
    *called = now() - before;
    while (w->ready <= turn + 1)
        continue;
    return woken == 1 ? w->ran[turn] - before : -1;
}

/* idle FIRST LAST STEP TURNS: pauses in ns, and wake-ups after each; a MICRO line of the calls and one until the sleeper runs */
int idle_main(char **argv)
{
    struct waits *w = shared_memory(sizeof *w);
    long first = atol(argv[2]), last = atol(argv[3]), step = atol(argv[4]), turns = atol(argv[5]);
    pid_t other = fork();
    int turn = 0;
    if (other == 0)
        sleeper(w);
    pin(0);
    end_of_boot();
    usleep(20000);
    if (parameter("BLOCKS", 0))
        log_blocks(1);
    for (long pause = first; pause <= last; pause += step) {
        double calls = 0, runs = 0;
        int asleep = 0;
        for (long i = 0; i < turns; i++) {
            double called, ran = wake_after(w, turn++, 1e-9 * (double)pause, &called);
            if (ran >= 0) {
                asleep++;
                calls += called;
                runs += ran;
            }
        }
        if (asleep)
            printf("MICRO call_after_%ld=%.1f run_after_%ld=%.1f asleep_%ld=%d\n", pause, 1e9 * calls / asleep, pause,
                   1e9 * runs / asleep, pause, asleep);
    }
    log_blocks(0);
    fflush(stdout);
    kill(other, SIGKILL);
    waitpid(other, 0, 0);
    return 0;
}
