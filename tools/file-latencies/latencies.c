/* latencies LOAD PROCESSES ROOT WARMUP_MS WINDOW_MS: how often a second processes do one thing in a directory each, and how long each time
 * takes. LOAD: write (append 256 KiB), round (write 256 KiB again and again over files of 512 MiB together), sync (append 4 KiB, fsync),
 * create (open with O_CREAT, close). Prints one line: load,processes, calls a second, their p50, p99 and longest latency in us (of fsync
 * alone with sync), idle percent, and percent of the CPUs that programs other than this one used.
 * latencies quiet MOST SECONDS: waits until others use no more than so many percent for 200 ms, at most so long. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1 << 21, PROCESSES = 16, BLOCK = 4096, LARGE = 64 * BLOCK, ROUND = 512 << 20, KERNEL_THREAD = 0x200000 };

struct call { long end; unsigned took; };
struct calls { volatile unsigned count; char pad[124]; struct call of[MOST]; };
static struct shared { volatile int ready, go; } *shared;
static struct calls *calls;
static char block[LARGE], directory[300];
static int fd, task, processes;
static long size = BLOCK;
static unsigned serial;

static void die(const char *what) { perror(what); _exit(1); }
#define OK(call) do { if ((call) < 0) die(#call); } while (0)
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }

static void write_at(long bytes, long at) { if (pwrite(fd, block, bytes, at) != bytes) die("pwrite"); }
static void l_nothing(void) {}
static void l_write(void) { write_at(LARGE, size); size += LARGE; }
static void l_round(void) { write_at(LARGE, size); size = (size + LARGE) % (ROUND / processes); }
static void l_append(void) { write_at(BLOCK, size); size += BLOCK; }
static void l_fsync(void) { OK(fsync(fd)); }
static char path[400];
static void l_name(void) { snprintf(path, sizeof path, "%s/f%04d_%08u", directory, task, serial++); }
static void l_create(void) { int made; OK(made = open(path, O_CREAT | O_EXCL | O_RDWR, 0644)); OK(close(made)); }

static const struct { const char *name; void (*before)(void), (*timed)(void); } loads[] = {
    {"write", l_nothing, l_write}, {"round", l_nothing, l_round}, {"sync", l_append, l_fsync}, {"create", l_name, l_create},
};

static void child(int load, const char *root) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct calls *mine = calls + task;
    memset((void *)mine, 0, sizeof *mine);
    snprintf(directory, sizeof directory, "%s/d%03d", root, task);
    OK(mkdir(directory, 0755));
    snprintf(path, sizeof path, "%s/file", directory);
    OK(fd = open(path, O_CREAT | O_RDWR, 0644));
    if (strcmp(loads[load].name, "round")) write_at(BLOCK, 0);
    else for (size = 0; size < ROUND / processes; size += LARGE) write_at(LARGE, size);
    size = strcmp(loads[load].name, "round") ? BLOCK : 0;
    OK(fsync(fd));
    __sync_fetch_and_add(&shared->ready, 1);
    while (!shared->go) usleep(100);
    for (unsigned i = 0; i < MOST; i++) {
        loads[load].before();
        long begin = now();
        loads[load].timed();
        long end = now();
        mine->of[i] = (struct call){end, end - begin > 0xffffffffL ? 0xffffffff : end - begin};
        mine->count = i + 1;
    }
    die("too many calls");
}

/* CPU time of all programs but this one and its children, in ticks; that of a child that ended is its parent's. */
static long others(void) {
    DIR *proc = opendir("/proc");
    long sum = 0;
    for (struct dirent *entry; (entry = readdir(proc));) {
        char name[300], line[1024];
        snprintf(name, sizeof name, "/proc/%s/stat", entry->d_name);
        FILE *file = *entry->d_name > '0' && *entry->d_name <= '9' ? fopen(name, "r") : 0;
        if (!file) continue;
        char *rest = fgets(line, sizeof line, file) ? strrchr(line, ')') : 0;
        fclose(file);
        int parent;
        unsigned flags;
        long user, system, child_user, child_system;
        if (!rest || sscanf(rest, ") %*c %d %*d %*d %*d %*d %u %*d %*d %*d %*d %ld %ld %ld %ld", &parent, &flags, &user, &system, &child_user, &child_system) != 6) continue;
        if (!(flags & KERNEL_THREAD) && atoi(entry->d_name) != getpid() && parent != getpid()) sum += user + system + child_user + child_system;
    }
    closedir(proc);
    return sum;
}

/* Ticks that all CPUs idled, waiting for I/O or not. */
static long idle(void) {
    long idle = 0, wait = 0;
    FILE *file = fopen("/proc/stat", "r");
    if (fscanf(file, "cpu %*d %*d %*d %ld %ld", &idle, &wait) != 2) die("/proc/stat");
    fclose(file);
    return idle + wait;
}

static double percent(long ticks, long ns) { return 100 * ticks / (ns / 1e9 * sysconf(_SC_CLK_TCK) * sysconf(_SC_NPROCESSORS_ONLN)); }

static int quiet(double most, int seconds) {
    for (long begin = now(); now() - begin < seconds * 1000000000L;) {
        long foreign = others(), from = now();
        usleep(200000);
        if (percent(others() - foreign, now() - from) <= most) return 0;
    }
    return 1;
}

static int compare(const void *a, const void *b) { unsigned x = *(unsigned *)a, y = *(unsigned *)b; return (x > y) - (x < y); }

int main(int argc, char **argv) {
    int load = -1;
    if (argc == 4 && !strcmp(argv[1], "quiet")) return quiet(atof(argv[2]), atoi(argv[3]));
    for (unsigned i = 0; argc > 1 && i < sizeof loads / sizeof *loads; i++) if (!strcmp(loads[i].name, argv[1])) load = i;
    if (argc != 6 || load < 0) { fprintf(stderr, "latencies write|round|sync|create PROCESSES ROOT WARMUP_MS WINDOW_MS\n"); return 2; }
    processes = atoi(argv[2]);
    if (processes < 1 || processes > PROCESSES) die("processes");
    for (unsigned i = 0; i < LARGE; i++) block[i] = random() >> 8;
    shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    calls = mmap(0, processes * sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[PROCESSES];
    for (task = 0; task < processes; task++) if (!(pids[task] = fork())) child(load, argv[3]);
    while (shared->ready < processes) { usleep(1000); if (waitpid(-1, 0, WNOHANG) > 0) return 1; }
    int root;
    OK(root = open(argv[3], O_RDONLY));
    OK(syncfs(root));
    shared->go = 1;
    usleep(atoi(argv[4]) * 1000);
    long foreign = others(), idled = idle(), begin = now();
    usleep(atoi(argv[5]) * 1000);
    long end = now();
    double idle_percent = percent(idle() - idled, end - begin), others_percent = percent(others() - foreign, end - begin);
    for (int i = 0; i < processes; i++) kill(pids[i], SIGKILL);
    for (int i = 0; i < processes; i++) waitpid(pids[i], 0, 0);
    unsigned long count = 0;
    unsigned *took = malloc(sizeof(unsigned) * MOST * processes);
    for (int i = 0; i < processes; i++) {
        if (calls[i].count == MOST) return 1;
        for (unsigned j = 0; j < calls[i].count; j++) {
            struct call *call = &calls[i].of[j];
            if (call->end >= begin && call->end < end) took[count++] = call->took;
        }
    }
    if (!count) { fprintf(stderr, "no call ended\n"); return 1; }
    qsort(took, count, sizeof *took, compare);
    printf("%s,%d,%.1f,%.2f,%.2f,%.2f,%.2f,%.2f\n", argv[1], processes, count / ((end - begin) / 1e9), took[count / 2] / 1e3, took[count * 99 / 100] / 1e3,
           took[count - 1] / 1e3, idle_percent, others_percent);
    return 0;
}
