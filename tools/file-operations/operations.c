/* operations LOOP PROCESSES DIRECTORIES ROOT [WINDOW_MS WINDOWS]: how often a second processes go through a loop, each bound to a CPU of its own.
 * DIRECTORIES: shared (one for all) or per-task. Prints one line: loop,processes,directories,then operations a second of each window.
 * Each process has 64 files of 16 KiB of its own, open, cached and synced; "any" is one of them, drawn at random.
 * A loop that is a sequence counts once for all of it. */
#define _GNU_SOURCE
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 64, BYTES = 16384, BLOCK = 4096 };

struct shared { volatile int ready, go; struct { volatile unsigned long done; char pad[120]; } of[64]; };
static struct shared *shared;
static char dirs[2][256], block[BYTES];
static char paths[FILES][300], missing[300], extra[300];
static int fds[FILES], task;
static unsigned serial, seed;

static void die(const char *what) { perror(what); _exit(1); }
#define OK(call) do { if ((call) < 0) die(#call); } while (0)

static int any(void) { seed = seed * 1664525u + 1013904223u; return (seed >> 16) % FILES; }
static void fresh(char *path, const char *dir) { snprintf(path, 300, "%s/f%04d_%08u", dir, task, serial++); }

static void l_stat(void) { struct stat s; OK(stat(paths[any()], &s)); }
static void l_stat_missing(void) { struct stat s; if (!stat(missing, &s)) die("missing"); }
static void opened(int flags) { int fd = open(paths[any()], flags, 0644); OK(fd); OK(close(fd)); }
static void l_open(void) { opened(O_RDONLY); }
static void l_open_rdwr(void) { opened(O_RDWR); }
static void l_open_creat(void) { opened(O_CREAT | O_WRONLY); }
static void l_read(void) { OK(pread(fds[any()], block, BLOCK, 0)); }
static void l_overwrite(void) { OK(pwrite(fds[any()], block, BLOCK, 0)); }
static void l_fstat(void) { struct stat s; OK(fstat(fds[any()], &s)); }
static void l_statfs(void) { struct statfs s; OK(statfs(dirs[0], &s)); }
static void l_utimes(void) { struct timespec t[2] = {{serial, 0}, {serial++, 0}}; OK(utimensat(AT_FDCWD, paths[any()], t, 0)); }
static void l_chmod(void) { OK(chmod(paths[any()], serial++ & 1 ? 0600 : 0644)); }
static void l_chown(void) { unsigned id = serial++ & 1; OK(chown(paths[any()], id, id)); }
static void l_fiemap(void) {
    struct { struct fiemap map; struct fiemap_extent extents[32]; } all;
    memset(&all.map, 0, sizeof all.map);
    all.map.fm_length = FIEMAP_MAX_OFFSET;
    all.map.fm_extent_count = 32;
    OK(ioctl(fds[any()], FS_IOC_FIEMAP, &all));
}
static void l_readdir(void) { DIR *d = opendir(dirs[0]); if (!d) die("opendir"); while (readdir(d)); closedir(d); }
static void locked(int type) { struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1}; OK(fcntl(fds[0], F_SETLK, &l)); }
static void l_lock(void) { locked(F_WRLCK); locked(F_UNLCK); }
static void l_append_truncate(void) { int fd = fds[0]; for (int i = 0; i < 4; i++) OK(pwrite(fd, block, BLOCK, i * BLOCK)); OK(ftruncate(fd, 0)); }
static void l_append_shorten(void) { static long size = BYTES; int fd = fds[0]; OK(pwrite(fd, block, BLOCK, size)); OK(ftruncate(fd, size)); }
static void l_fallocate_truncate(void) { int fd = fds[0]; for (int i = 0; i < 4; i++) OK(fallocate(fd, 0, i * BLOCK, BLOCK)); OK(ftruncate(fd, 0)); }
static void l_overwrite_fsync(void) { int fd = fds[any()]; OK(pwrite(fd, block, BLOCK, 0)); OK(fsync(fd)); }
static void l_append_fsync(void) { static long size = BYTES; int fd = fds[0]; OK(pwrite(fd, block, BLOCK, size)); size += BLOCK; OK(fsync(fd)); }
static void renamed(const char *dir) { int f = any(); char to[300]; fresh(to, dir); OK(rename(paths[f], to)); strcpy(paths[f], to); }
static void l_rename(void) { renamed(dirs[0]); }
static void l_move(void) { int f = any(); char to[300]; fresh(to, dirs[!strncmp(paths[f], dirs[0], strlen(dirs[0])) && paths[f][strlen(dirs[0])] == '/']); OK(rename(paths[f], to)); strcpy(paths[f], to); }
static void l_link_unlink(void) { fresh(extra, dirs[0]); OK(link(paths[0], extra)); OK(unlink(extra)); }
static void l_mkdir_rmdir(void) { fresh(extra, dirs[0]); OK(mkdir(extra, 0755)); OK(rmdir(extra)); }
static int made(int bytes) { fresh(extra, dirs[0]); int fd = open(extra, O_CREAT | O_EXCL | O_RDWR, 0644); OK(fd); if (bytes) OK(write(fd, block, bytes)); return fd; }
static void l_create_unlink(void) { OK(close(made(0))); OK(unlink(extra)); }
static void l_create_write_unlink(void) { OK(close(made(BLOCK))); OK(unlink(extra)); }
static void l_create_fsync_unlink(void) { int fd = made(BLOCK); OK(fsync(fd)); OK(close(fd)); OK(unlink(extra)); }
static void l_create(void) { OK(close(made(0))); }
static void l_reflink_unlink(void) { int fd = made(0); OK(ioctl(fd, FICLONE, fds[any()])); OK(close(fd)); OK(unlink(extra)); }
static void l_getpid(void) { syscall(SYS_getppid); }

#define LOOP(name) {#name, l_##name}
static const struct { const char *name; void (*once)(void); } loops[] = {
    LOOP(getpid), LOOP(stat), LOOP(stat_missing), LOOP(open), LOOP(open_rdwr), LOOP(open_creat), LOOP(read), LOOP(overwrite), LOOP(fstat), LOOP(statfs),
    LOOP(utimes), LOOP(chmod), LOOP(chown), LOOP(fiemap), LOOP(readdir), LOOP(lock), LOOP(append_truncate), LOOP(append_shorten),
    LOOP(fallocate_truncate), LOOP(overwrite_fsync), LOOP(append_fsync), LOOP(rename), LOOP(move), LOOP(link_unlink), LOOP(mkdir_rmdir),
    LOOP(create_unlink), LOOP(create_write_unlink), LOOP(create_fsync_unlink), LOOP(create), LOOP(reflink_unlink),
};

static void prepare(const char *root, int own) {
    for (int i = 0; i < 2; i++) {
        snprintf(dirs[i], 256, "%s/d%03d%c", root, own ? task : 0, "ab"[i]);
        if (mkdir(dirs[i], 0755) && errno != EEXIST) die(dirs[i]);
    }
    for (int i = 0; i < FILES; i++) {
        fresh(paths[i], dirs[0]);
        OK(fds[i] = open(paths[i], O_CREAT | O_RDWR, 0644));
        OK(write(fds[i], block, BYTES));
    }
    snprintf(missing, 300, "%s/none", dirs[0]);
}

static void child(void (*once)(void), const char *root, int own) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    cpu_set_t cpu; CPU_ZERO(&cpu); CPU_SET(task % sysconf(_SC_NPROCESSORS_ONLN), &cpu);
    OK(sched_setaffinity(0, sizeof cpu, &cpu));
    seed = task + 1;
    prepare(root, own);
    __sync_fetch_and_add(&shared->ready, 1);
    while (!shared->go) usleep(100);
    for (;;) { once(); shared->of[task].done++; }
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "--list")) {
        for (unsigned i = 0; i < sizeof loops / sizeof *loops; i++) puts(loops[i].name);
        return 0;
    }
    if (argc < 5) { fprintf(stderr, "operations LOOP PROCESSES shared|per-task ROOT [WINDOW_MS WINDOWS]\n"); return 2; }
    int n = atoi(argv[2]), ms = argc > 5 ? atoi(argv[5]) : 200, windows = argc > 6 ? atoi(argv[6]) : 5;
    void (*once)(void) = 0;
    for (unsigned i = 0; i < sizeof loops / sizeof *loops; i++) if (!strcmp(loops[i].name, argv[1])) once = loops[i].once;
    if (!once) { fprintf(stderr, "no loop %s\n", argv[1]); return 2; }
    shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[64];
    for (task = 0; task < n; task++) if (!(pids[task] = fork())) child(once, argv[4], !strcmp(argv[3], "per-task"));
    while (shared->ready < n) { usleep(1000); if (waitpid(-1, 0, WNOHANG) > 0) { fprintf(stderr, "%s failed\n", argv[1]); return 1; } }
    sync();
    shared->go = 1;
    usleep(50000);
    printf("%s,%d,%s", argv[1], n, argv[3]);
    for (int w = 0; w < windows; w++) {
        struct timespec a, b; unsigned long before = 0, after = 0;
        clock_gettime(CLOCK_MONOTONIC, &a); for (int i = 0; i < n; i++) before += shared->of[i].done;
        usleep(ms * 1000);
        clock_gettime(CLOCK_MONOTONIC, &b); for (int i = 0; i < n; i++) after += shared->of[i].done;
        printf(",%.0f", (after - before) / ((b.tv_sec - a.tv_sec) + (b.tv_nsec - a.tv_nsec) / 1e9));
    }
    printf("\n");
    int failed = 0;
    for (int i = 0; i < n; i++) { int s; if (waitpid(pids[i], &s, WNOHANG) == pids[i]) failed = 1; else { kill(pids[i], SIGKILL); waitpid(pids[i], &s, 0); } }
    return failed;
}
