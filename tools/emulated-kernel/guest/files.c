/* Loops over small files; an operation of each kind is one turn. */
#include "load.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char page[4096] __attribute__((aligned(4096)));
static int kept = -1; /* descriptor that a kind keeps open */

static int create(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0644);
    if (fd < 0)
        die(name);
    return fd;
}

static void create_only(const char *dir, int task, long n)
{
    char name[160];
    snprintf(name, sizeof name, "%s/c%d.%ld", dir, task, n);
    close(create(name));
}

static void create_unlink(const char *dir, int task, long n)
{
    char name[160];
    snprintf(name, sizeof name, "%s/u%d.%ld", dir, task, n);
    close(create(name));
    if (unlink(name))
        die(name);
}

static void temporary_file(const char *dir, int task, long n)
{
    char name[160];
    int fd;
    snprintf(name, sizeof name, "%s/t%d.%ld", dir, task, n);
    fd = create(name);
    if (write(fd, page, sizeof page) != sizeof page)
        die(name);
    close(fd);
    if (unlink(name))
        die(name);
}

static void rename_prepare(const char *dir, int task)
{
    char name[160];
    snprintf(name, sizeof name, "%s/r%d.0", dir, task);
    close(create(name));
}

static void rename_between(const char *dir, int task, long n)
{
    char from[160], to[160];
    snprintf(from, sizeof from, "%s/r%d.%ld", dir, task, n % 2);
    snprintf(to, sizeof to, "%s/r%d.%ld", dir, task, 1 - n % 2);
    if (rename(from, to))
        die(from);
}

static void make_and_remove_directory(const char *dir, int task, long n)
{
    char name[160];
    snprintf(name, sizeof name, "%s/m%d.%ld", dir, task, n);
    if (mkdir(name, 0755) || rmdir(name))
        die(name);
}

static void stat_prepare(const char *dir, int task)
{
    char name[160];
    snprintf(name, sizeof name, "%s/s%d", dir, task);
    close(create(name));
}

static void stat_own(const char *dir, int task, long n)
{
    char name[160];
    struct stat found;
    (void)n;
    snprintf(name, sizeof name, "%s/s%d", dir, task);
    if (stat(name, &found))
        die(name);
}

static void append_prepare(const char *dir, int task)
{
    char name[160];
    snprintf(name, sizeof name, "%s/a%d", dir, task);
    kept = create(name);
}

static void append_only(const char *dir, int task, long n)
{
    (void)dir, (void)task, (void)n;
    if (write(kept, page, sizeof page) != sizeof page)
        die("append");
}

static void append_fsync(const char *dir, int task, long n)
{
    (void)dir, (void)task, (void)n;
    if (write(kept, page, sizeof page) != sizeof page || fsync(kept))
        die("append");
}

/* As fs_mark with -S1, one sync a file. */
static void create_write_fsync(const char *dir, int task, long n)
{
    char name[160];
    int fd;
    snprintf(name, sizeof name, "%s/f%d.%ld", dir, task, n);
    fd = create(name);
    if (write(fd, page, sizeof page) != sizeof page || fsync(fd))
        die(name);
    close(fd);
}

static void overwrite_prepare(const char *dir, int task)
{
    append_prepare(dir, task);
    for (int i = 0; i < 16; i++)
        if (write(kept, page, sizeof page) != sizeof page)
            die("prepare");
}

static void overwrite_fsync(const char *dir, int task, long n)
{
    (void)dir, (void)task;
    if (pwrite(kept, page, sizeof page, 4096L * (n % 16)) != sizeof page || fsync(kept))
        die("overwrite");
}

/* As 4 KiB in operations.c: how long each further page takes. */
#define LARGE 65536
static char pages[LARGE] __attribute__((aligned(4096)));

static void large_prepare(const char *dir, int task)
{
    append_prepare(dir, task);
    if (write(kept, pages, LARGE) != LARGE)
        die("large");
}

static void read_large(const char *dir, int task, long n)
{
    (void)dir, (void)task, (void)n;
    if (pread(kept, pages, LARGE, 0) != LARGE)
        die("read");
}

static void overwrite_large(const char *dir, int task, long n)
{
    (void)dir, (void)task, (void)n;
    if (pwrite(kept, pages, LARGE, 0) != LARGE)
        die("overwrite");
}

static void append_large(const char *dir, int task, long n)
{
    (void)dir, (void)task, (void)n;
    if (write(kept, pages, LARGE) != LARGE)
        die("append");
}

static void truncate_large(const char *dir, int task, long n)
{
    append_large(dir, task, n);
    if (ftruncate(kept, 0) || lseek(kept, 0, SEEK_SET))
        die("ftruncate");
}

static void list(const char *dir, int task, long n)
{
    DIR *listed = opendir(dir);
    (void)task, (void)n;
    if (!listed)
        die(dir);
    while (readdir(listed))
        continue;
    closedir(listed);
}

static void link_unlink(const char *dir, int task, long n)
{
    char own[160], other[160];
    snprintf(own, sizeof own, "%s/s%d", dir, task);
    snprintf(other, sizeof other, "%s/l%d.%ld", dir, task, n);
    if (link(own, other) || unlink(other))
        die(other);
}

#define DIRECT_PAGES 4096
static void direct_prepare(const char *dir, int task)
{
    char name[160];
    snprintf(name, sizeof name, "%s/d", dir);
    kept = open(name, O_RDWR | O_CREAT, 0644);
    for (int i = 0; kept >= 0 && task == 0 && i < DIRECT_PAGES; i++)
        if (write(kept, page, sizeof page) != sizeof page)
            die(name);
    if (kept < 0 || fsync(kept) || fcntl(kept, F_SETFL, O_DIRECT))
        die(name);
}

/* Every fourth request is a write; each goes to the next page of a fixed walk. */
static void direct_io(const char *dir, int task, long n)
{
    off_t at = 4096L * ((task * 1021L + n * 769L) % DIRECT_PAGES);
    ssize_t done = n % 4 ? pread(kept, page, sizeof page, at) : pwrite(kept, page, sizeof page, at);
    (void)dir;
    if (done != sizeof page)
        die("direct I/O");
}

/* Allocated and not written: each write is to an even page of a fixed walk, so within an unwritten extent. */
static void unwritten_prepare(const char *dir, int task)
{
    char name[160];
    snprintf(name, sizeof name, "%s/n%d", dir, task);
    kept = create(name);
    if (fallocate(kept, 0, 0, 4096L * 2 * DIRECT_PAGES) || fsync(kept) || fcntl(kept, F_SETFL, O_DIRECT))
        die(name);
}

static void direct_unwritten(const char *dir, int task, long n)
{
    (void)dir, (void)task;
    if (pwrite(kept, page, sizeof page, 4096L * 2 * (n * 769L % DIRECT_PAGES)) != sizeof page)
        die("direct write");
}

static void open_existing(const char *dir, int task, long n)
{
    char name[160];
    int fd;
    (void)n;
    snprintf(name, sizeof name, "%s/s%d", dir, task);
    fd = open(name, O_RDWR | O_CREAT, 0600);
    if (fd < 0)
        die(name);
    close(fd);
}

/* One byte less each time, as will-it-scale's and others' tests of orphans do. */
static void shorten_prepare(const char *dir, int task)
{
    append_prepare(dir, task);
    for (int i = 0; i < 16; i++)
        append_only(dir, task, i);
}

static void shorten(const char *dir, int task, long n)
{
    (void)dir, (void)task;
    if (ftruncate(kept, 16 * 4096 - 1 - n % 60000))
        die("ftruncate");
}

static void change_owner(const char *dir, int task, long n)
{
    (void)dir, (void)task;
    if (fchown(kept, 1 + (uid_t)(n % 2), (gid_t)-1))
        die("fchown");
}

/* There and back between a directory of its own and the one above. */
static void move(const char *dir, int task, long n)
{
    char own[160], above[160];
    snprintf(own, sizeof own, "%s/r%d.0", dir, task);
    snprintf(above, sizeof above, "%s/../r%d.0", dir, task);
    if (n % 2 ? rename(above, own) : rename(own, above))
        die(own);
}

/* One file for all tasks of a directory, with a page, and a byte to lock, for each. */
static void shared_prepare(const char *dir, int task)
{
    char name[160];
    snprintf(name, sizeof name, "%s/one", dir);
    kept = open(name, O_RDWR | O_CREAT, 0644);
    if (kept < 0 || pwrite(kept, page, sizeof page, 4096L * task) != sizeof page)
        die(name);
}

static void shared_open(const char *dir, int task, long n)
{
    char name[160];
    int fd;
    (void)task, (void)n;
    snprintf(name, sizeof name, "%s/one", dir);
    fd = open(name, O_RDWR);
    if (fd < 0)
        die(name);
    close(fd);
}

static void shared_lock(const char *dir, int task, long n)
{
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = task, .l_len = 1};
    int locked = fcntl(kept, F_SETLK, &range);
    (void)dir, (void)n;
    range.l_type = F_UNLCK;
    if (locked || fcntl(kept, F_SETLK, &range))
        die("fcntl");
}

static void shared_write(const char *dir, int task, long n)
{
    (void)dir, (void)n;
    if (pwrite(kept, page, sizeof page, 4096L * task) != sizeof page)
        die("pwrite");
}

/* Half of the tasks write to the list of tasks, half read it (tasklist_lock). */
static void process_groups(const char *dir, int task, long n)
{
    (void)dir, (void)n;
    if (task % 2)
        kill(0, 0);
    else
        setpgid(0, 0);
}

static void child(const char *dir, int task, long n)
{
    pid_t pid = vfork();
    (void)dir, (void)task, (void)n;
    if (pid == 0)
        _exit(0);
    waitpid(pid, 0, 0);
}

/* Two tasks read the list of locks, which the others change (file_rwsem). */
static void list_locks(const char *dir, int task, long n)
{
    static char list[1 << 16];
    int fd;
    if (task > 1) {
        shared_lock(dir, task, n);
        return;
    }
    fd = open("/proc/locks", O_RDONLY);
    if (fd < 0 || read(fd, list, sizeof list) < 0)
        die("/proc/locks");
    close(fd);
}

const struct kind file_kinds[] = {
    {"create", 0, create_only},
    {"create_unlink", 0, create_unlink},
    {"tmpfile", 0, temporary_file},
    {"rename", rename_prepare, rename_between},
    {"mkdir_rmdir", 0, make_and_remove_directory},
    {"stat", stat_prepare, stat_own},
    {"open_creat", stat_prepare, open_existing},
    {"move", rename_prepare, move},
    {"append", append_prepare, append_only},
    {"read_large", large_prepare, read_large},
    {"overwrite_large", large_prepare, overwrite_large},
    {"append_large", large_prepare, append_large},
    {"truncate_large", append_prepare, truncate_large},
    {"list", 0, list},
    {"link_unlink", stat_prepare, link_unlink},
    {"shorten", shorten_prepare, shorten},
    {"fchown", append_prepare, change_owner},
    {"append_fsync", append_prepare, append_fsync},
    {"create_fsync", 0, create_write_fsync},
    {"overwrite_fsync", overwrite_prepare, overwrite_fsync},
    {"shared_open", shared_prepare, shared_open},
    {"shared_lock", shared_prepare, shared_lock},
    {"shared_write", shared_prepare, shared_write},
    {"process_groups", 0, process_groups},
    {"vfork", 0, child},
    {"list_locks", shared_prepare, list_locks},
    {"direct_io", direct_prepare, direct_io},
    {"direct_unwritten", unwritten_prepare, direct_unwritten},
    {"compile", 0, compile_operation},
    {0, 0, 0},
};
