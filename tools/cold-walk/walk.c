/* walk make ROOT DIRECTORIES FILES: that many empty files in each of so many directories below ROOT.
 * walk [-i] [CALL] ROOT: goes through each directory below ROOT: getdents, and the call for each name in the order in which they come (-i: in
 * that of their inodes). CALL is stat (fstatat, the default), open (and close), chmod, chown or unlink. Prints files, then ns of CPU
 * a file: of all, of getdents, and of the calls.
 * walk bulkstat ROOT: ioctl(XFS_IOC_BULKSTAT) of 1,024 inodes at a time, through the whole filesystem. The second figure is 0.
 * Bound to one CPU; who else runs there counts for nothing, nor does the device. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
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

static void c_stat(int dir, const char *name) { struct stat s; OK(fstatat(dir, name, &s, AT_SYMLINK_NOFOLLOW)); }
static void c_open(int dir, const char *name) { int fd = openat(dir, name, O_RDONLY | O_NOATIME); OK(fd); OK(close(fd)); }
static void c_chmod(int dir, const char *name) { OK(fchmodat(dir, name, 0600, 0)); }
static void c_chown(int dir, const char *name) { OK(fchownat(dir, name, 1, 1, 0)); }
static void c_unlink(int dir, const char *name) { OK(unlinkat(dir, name, 0)); }
static const struct { const char *name; void (*call)(int, const char *); } calls[] = {
    {"stat", c_stat}, {"open", c_open}, {"chmod", c_chmod}, {"chown", c_chown}, {"unlink", c_unlink},
};

/* struct xfs_bulkstat_req and xfs_bulkstat of xfs_fs.h, as far as needed. */
enum { BATCH = 1024 };
static struct { struct { unsigned long ino; unsigned flags, icount, ocount, agno; unsigned long reserved[5]; } head; unsigned long of[BATCH][24]; } bulk;
#define XFS_IOC_BULKSTAT _IOC(_IOC_READ, 'X', 127, 64)

static void bulkstat(const char *root) {
    int fd = open(root, O_RDONLY | O_DIRECTORY);
    OK(fd);
    long files = 0;
    double begin = now();
    for (bulk.head.icount = BATCH;; files += bulk.head.ocount) {
        OK(ioctl(fd, XFS_IOC_BULKSTAT, &bulk));
        if (!bulk.head.ocount) break;
    }
    double each = (now() - begin) / files;
    printf("%ld,%.0f,0,%.0f\n", files, each, each);
}

int main(int argc, char **argv) {
    if (argc == 5 && !strcmp(argv[1], "make")) { make(argv[2], atoi(argv[3]), atoi(argv[4])); return 0; }
    int sorted = argc > 2 && !strcmp(argv[1], "-i");
    void (*call)(int, const char *) = c_stat;
    for (unsigned c = 0; c < sizeof calls / sizeof *calls; c++)
        if (argc > 2 && !strcmp(argv[argc - 2], calls[c].name)) call = calls[c].call;
    cpu_set_t cpu; CPU_ZERO(&cpu); CPU_SET(0, &cpu);
    OK(sched_setaffinity(0, sizeof cpu, &cpu));
    memset(&bulk, 1, sizeof bulk);
    memset(&bulk.head, 0, sizeof bulk.head);
    if (argc == 3 && !strcmp(argv[1], "bulkstat")) { bulkstat(argv[2]); return 0; }
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
        for (int f = 0; f < count; f++) call(fd, names[f].name);
        statting += now() - order;
        listing += listed - begin;
        files += count;
        close(fd);
    }
    printf("%ld,%.0f,%.0f,%.0f\n", files, (listing + statting) / files, listing / files, statting / files);
    return 0;
}
