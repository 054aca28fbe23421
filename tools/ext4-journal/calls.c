/* calls DIRECTORY: how long calls on names take, one task bound to a CPU. Prints a line a call: its name, tab, nanoseconds; of batches of 40
 * the shortest one within a second. `run.sh` compares ext4 with and without a journal. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 40 };
enum call { CREATE, CHMOD, FCHOWN, RENAME, MOVE, LINK, UNLINK, UNLINK_OPEN, LAST_CLOSE, CREATE_UNLINK, APPEND, TRUNCATE, MKDIR, RMDIR, CALLS };
static const char *const names[CALLS] = {
    "create", "chmod", "fchown", "rename", "move", "link", "unlink of one of two", "unlink of an open one", "last close",
    "create, close, unlink", "append", "truncate", "mkdir", "rmdir",
};
static double shortest[CALLS];
static char file[BATCH][32], renamed[BATCH][32], moved[BATCH][32], block[4096];
static int fds[BATCH];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int create(int i) { return open(file[i], O_CREAT | O_EXCL | O_RDWR, 0644); }

static int one(enum call call, int i) {
    switch (call) {
    case CREATE: return fds[i] = create(i);
    case CHMOD: return chmod(file[i], 0600);
    case FCHOWN: return fchown(fds[i], i + 1, 1);
    case RENAME: return rename(file[i], renamed[i]);
    case MOVE: return rename(renamed[i], moved[i]);
    case LINK: return link(moved[i], file[i]);
    case UNLINK: return unlink(moved[i]);
    case UNLINK_OPEN: return unlink(file[i]);
    case LAST_CLOSE: return close(fds[i]);
    case CREATE_UNLINK: return close(create(i)) | unlink(file[i]);
    case APPEND: return write(fds[i], block, sizeof block) < 0 ? -1 : 0;
    case TRUNCATE: return ftruncate(fds[i], 0);
    case MKDIR: return mkdir(file[i], 0755);
    case RMDIR: return rmdir(file[i]);
    default: return -1;
    }
}

static int failed;

static void batch(enum call call) {
    double begin = now();
    for (int i = 0; i < BATCH; i++) failed |= one(call, i) < 0;
    double time = (now() - begin) / BATCH;
    if (!shortest[call] || time < shortest[call]) shortest[call] = time;
}

int main(int count, char **words) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus);
    mlockall(MCL_CURRENT);
    if (count != 2 || chdir(words[1]) || mkdir("d", 0755) || mkdir("e", 0755)) return perror("calls DIRECTORY"), 2;
    for (int i = 0; i < BATCH; i++) {
        snprintf(file[i], sizeof file[i], "d/file-%04d", i);
        snprintf(renamed[i], sizeof renamed[i], "d/name-%04d", i);
        snprintf(moved[i], sizeof moved[i], "e/file-%04d", i);
    }
    for (double end = now() + 1e9; now() < end;) {
        for (enum call call = CREATE; call <= CREATE_UNLINK; call++) batch(call);
        for (int i = 0; i < BATCH; i++) failed |= (fds[i] = create(i)) < 0;
        batch(APPEND);
        batch(TRUNCATE);
        for (int i = 0; i < BATCH; i++) failed |= close(fds[i]) | unlink(file[i]);
        batch(MKDIR);
        batch(RMDIR);
    }
    for (enum call call = 0; call < CALLS; call++) printf("%s\t%.0f\n", names[call], shortest[call]);
    if (failed) fputs("a call failed\n", stderr);
    return failed;
}
