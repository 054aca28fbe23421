/*
 * load run KIND DIR TASKS PIN OWN WARM WINDOW WINDOWS    loops of a kind by TASKS processes; one RESULT line a window
 * load wake|chain|forks ...                              the scheduler without a filesystem (wake.c)
 * load micro                                             what single events cost (micro.c)
 * load idle FIRST LAST STEP TURNS                        wake-ups of who went to sleep so many ns before (idle.c)
 * load out FILE                                          copy a file to the debug port, which the host keeps
 *
 * PIN binds process i to CPU i; OWN gives each a directory of its own; WARM and WINDOW are milliseconds.
 * TRACE=1 in the environment switches tracing on during the last window.
 */
#include "load.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FORKS_A_COMPILE 3
#define DEBUG_PORT 0xe9

struct options {
    const struct kind *kind;
    const char *dir;
    int tasks, pin, own, windows;
    double warm, window;
};

struct counts {
    double time;
    double idle; /* of all CPUs, in units of sysconf(_SC_CLK_TCK) */
    long switches, forks, operations, migrations;
    long task[MAX_TASKS];
};

static void rest(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&t, 0);
}

static void read_file(const char *name, char *buffer, size_t size)
{
    size_t have = 0;
    ssize_t more;
    int fd = open(name, O_RDONLY);
    if (fd < 0)
        die(name);
    while ((more = read(fd, buffer + have, size - 1 - have)) > 0)
        have += (size_t)more;
    close(fd);
    buffer[have] = 0;
}

static long field(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    if (!at)
        return 0;
    at += strlen(name);
    return atol(at + strspn(at, " \t:"));
}

static void count_machine(struct counts *c)
{
    static char text[1 << 16];
    double idle, iowait;
    read_file("/proc/stat", text, sizeof text);
    if (sscanf(text, "cpu %*f %*f %*f %lf %lf", &idle, &iowait) != 2)
        die("/proc/stat");
    c->idle = idle + iowait;
    c->switches = field(text, "\nctxt");
    c->forks = field(text, "\nprocesses");
}

static long count_migrations(const pid_t *pids, int tasks)
{
    static char text[1 << 14];
    long sum = 0;
    for (int i = 0; i < tasks; i++) {
        char name[64];
        snprintf(name, sizeof name, "/proc/%d/sched", pids[i]);
        read_file(name, text, sizeof text);
        sum += field(text, "se.nr_migrations");
    }
    return sum;
}

static void count(struct counts *c, const struct shared *shared, int tasks)
{
    count_machine(c);
    c->time = now();
    c->operations = 0;
    for (int i = 0; i < tasks; i++)
        c->operations += c->task[i] = shared->task[i].operations;
}

void tracing(int on)
{
    int fd;
    if (!parameter("TRACE", 0))
        return;
    fd = open("/sys/kernel/tracing/tracing_on", O_WRONLY);
    if (fd < 0 || write(fd, on ? "1" : "0", 1) != 1)
        die("tracing_on");
    close(fd);
}

/* A second, by the tasks that only read. */
static double reads(const struct counts *a, const struct counts *b)
{
    double sum = 0;
    for (int i = 0; i < readers; i++)
        sum += (double)(b->task[i] - a->task[i]);
    return sum / (b->time - a->time);
}

static void report(const struct options *o, int window, const struct counts *a, const struct counts *b)
{
    /* Idle time is measured (get_cpu_idle_time_us), busy time is what ticks found: so idle of all there is, not of both. */
    double seconds = b->time - a->time, idle = b->idle - a->idle;
    double all = seconds * (double)(sysconf(_SC_CLK_TCK) * sysconf(_SC_NPROCESSORS_ONLN));
    double operations = (double)(b->operations - a->operations);
    if (!strcmp(o->kind->name, "compile")) /* finer than whole compiles */
        operations = (double)(b->forks - a->forks) / FORKS_A_COMPILE;
    printf("RESULT kind=%s tasks=%d pin=%d own=%d window=%d seconds=%.6f operations=%.1f rate=%.1f idle=%.3f switches=%.4f"
           " migrations=%.4f", o->kind->name, o->tasks, o->pin, o->own, window, seconds, operations,
           operations / seconds, 100 * idle / all, (double)(b->switches - a->switches) / operations,
           (double)(b->migrations - a->migrations) / operations);
    if (readers)
        printf(" readers=%d reads=%.1f", readers, reads(a, b));
    printf("\n");
    fflush(stdout);
}

static void work(const struct options *o, struct shared *shared, int i)
{
    char dir[128];
    snprintf(dir, sizeof dir, o->own ? "%s/d%d" : "%s", o->dir, i);
    if (o->own && mkdir(dir, 0755))
        die(dir);
    if (o->kind->prepare)
        o->kind->prepare(dir, i);
    if (o->pin)
        pin(i);
    shared->task[i].operations = 1; /* ready */
    while (!shared->go)
        usleep(1000);
    burn(1000L * (i * 7919 % 97));
    for (long n = 0;; n++) {
        o->kind->operation(dir, i, n);
        shared->task[i].operations++;
    }
}

static int run(const struct options *o)
{
    struct shared *shared = shared_memory(sizeof *shared);
    pid_t pids[MAX_TASKS];
    for (int i = 0; i < o->tasks; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            work(o, shared, i);
        while (!shared->task[i].operations)
            usleep(1000);
    }
    sync();
    end_of_boot();
    shared->go = 1;
    rest(o->warm);
    for (int w = 0; w < o->windows; w++) {
        struct counts a, b;
        int last = w == o->windows - 1;
        a.migrations = count_migrations(pids, o->tasks);
        if (last)
            tracing(1);
        if (last && parameter("BLOCKS", 0))
            log_blocks(1);
        count(&a, shared, o->tasks);
        rest(o->window);
        if (last && parameter("BLOCKS", 0))
            log_blocks(0);
        count(&b, shared, o->tasks);
        if (last)
            tracing(0);
        b.migrations = count_migrations(pids, o->tasks);
        report(o, w, &a, &b);
    }
    for (int i = 0; i < o->tasks; i++)
        kill(pids[i], SIGKILL);
    return 0;
}

static const struct kind *kind_of(const char *name)
{
    for (const struct kind *k = file_kinds; k->name; k++)
        if (!strcmp(k->name, name))
            return k;
    if (operation_kind(name))
        return operation_kind(name);
    if (readers_kind(name))
        return readers_kind(name);
    fprintf(stderr, "no kind '%s'\n", name);
    _exit(2);
}

static int copy_out(const char *name)
{
    static char buffer[1 << 16];
    int fd = open(name, O_RDONLY);
    ssize_t got;
    if (fd < 0 || ioperm(DEBUG_PORT, 1, 1))
        die(name);
    while ((got = read(fd, buffer, sizeof buffer)) > 0) {
        const char *from = buffer;
        long left = got;
        __asm__ volatile("rep outsb" : "+S"(from), "+c"(left) : "d"(DEBUG_PORT) : "memory");
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 10 && !strcmp(argv[1], "run")) {
        struct options o = {.kind = kind_of(argv[2]), .dir = argv[3], .tasks = atoi(argv[4]), .pin = atoi(argv[5]),
                            .own = atoi(argv[6]), .windows = atoi(argv[9]),
                            .warm = 1e-3 * atof(argv[7]), .window = 1e-3 * atof(argv[8])};
        return run(&o);
    }
    if (argc == 3 && !strcmp(argv[1], "out"))
        return copy_out(argv[2]);
    if (argc == 2 && !strcmp(argv[1], "micro"))
        return micro_main();
    if (argc == 6 && !strcmp(argv[1], "idle"))
        return idle_main(argv);
    if (argc >= 3 && !strcmp(argv[1], "steps"))
        return steps_main(argc, argv);
    if (argc >= 3 && (!strcmp(argv[1], "driver") || !strcmp(argv[1], "compiler") || !strcmp(argv[1], "assembler")))
        return compile_role(argv);
    return wake_main(argc, argv);
}
