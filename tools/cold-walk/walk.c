/* walk make ROOT DIRECTORIES FILES: that many empty files in each of so many directories below ROOT.
 * walk ROOT: goes through each directory below ROOT: getdents, and fstatat of each name in the order in which they come (-i: in that of
 * their inodes). Prints files, then ns of CPU a file: of all, of getdents, and of fstatat.
 * Bound to one CPU; who else runs there counts for nothing, nor does the device. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NAMES = 100000, NAME = 64, ROOM = 32768 };
struct entry { unsigned long ino, off; unsigned short len; unsigned char type; char name[]; };
static struct name { unsigned long ino; char name[NAME]; } *names;
static char room[ROOM];

static void die(const char *what) { perror(what); exit(1); }
#define OK(call) do { if ((call) < 0) die(#call); } while (0)

static double now(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec * 1e9 + t.tv_nsec; }

static void make(const char *root, int directories, int files) {
    char path[512];
    for (int d = 0; d < directories; d++) {
        snprintf(path, 512, "%s/d%04d", root, d);
        OK(mkdir(path, 0755));
        for (int f = 0; f < files; f++) {
            snprintf(path, 512, "%s/d%04d/file%08d", root, d, f);
            int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);
            OK(fd);
            OK(close(fd));
        }
    }
}

static int by_inode(const void *a, const void *b) {
    unsigned long x = ((const struct name *)a)->ino, y = ((const struct name *)b)->ino;
    return x < y ? -1 : x > y;
}

static int list(int fd) {
    int count = 0;
    for (;;) {
        long got = syscall(SYS_getdents64, fd, room, ROOM);
        OK(got);
        if (!got) return count;
        for (long at = 0; at < got;) {
            struct entry *e = (struct entry *)(room + at);
            at += e->len;
            if (e->name[0] == '.' || count == NAMES) continue;
            names[count].ino = e->ino;
            snprintf(names[count++].name, NAME, "%s", e->name);
        }
    }
}

int main(int argc, char **argv) {
    if (argc == 5 && !strcmp(argv[1], "make")) { make(argv[2], atoi(argv[3]), atoi(argv[4])); return 0; }
    int sorted = argc == 3 && !strcmp(argv[1], "-i");
    cpu_set_t cpu; CPU_ZERO(&cpu); CPU_SET(0, &cpu);
    OK(sched_setaffinity(0, sizeof cpu, &cpu));
    names = calloc(NAMES, sizeof *names);
    memset(names, 1, NAMES * sizeof *names);
    DIR *root = opendir(argv[argc - 1]);
    if (!root) die("root");
    double listing = 0, statting = 0;
    long files = 0;
    for (struct dirent *d; (d = readdir(root));) {
        if (d->d_name[0] != 'd') continue;
        double begin = now();
        int fd = openat(dirfd(root), d->d_name, O_RDONLY | O_DIRECTORY);
        OK(fd);
        int count = list(fd);
        double listed = now();
        if (sorted) qsort(names, count, sizeof *names, by_inode);
        double order = now();
        struct stat s;
        for (int f = 0; f < count; f++) OK(fstatat(fd, names[f].name, &s, AT_SYMLINK_NOFOLLOW));
        statting += now() - order;
        listing += listed - begin;
        files += count;
        close(fd);
    }
    printf("%ld,%.0f,%.0f,%.0f\n", files, (listing + statting) / files, listing / files, statting / files);
    return 0;
}
