/* prices CPU [LOOPS]: what instructions take that the laboratory counts apart (`classes` of a machine), in ns; x86-64.
 * Many short loops of each in turn, so that what disturbs one disturbs few of each; prints their 10th, 50th and 90th percentiles.
 * gcc -O2 -msse4.2 -o prices prices.c */
#define _GNU_SOURCE
#include <nmmintrin.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TEN = 10, BLOCK = 512, LOOP_NS = 20000, BYTES = 3072, NEAR = 25 };

static uint64_t word, block[BLOCK], sum;
static char path[300];
static unsigned cpu, node, serial;

/* As the kernel has them: a return in a line of its own, and a retpoline that jumps to it. */
__asm__(".text\n.p2align 6\nreturn_thunk: ret\nint3\n.p2align 6\nretpoline: call 1f\nint3\n1: mov %rax, (%rsp)\njmp return_thunk\n"
        ".p2align 6\nnothing: ret\n");

#define TIMES(x) x x x x x x x x x x
#define RED_ZONE(code) __asm__ volatile("sub $128, %%rsp\n" code "add $128, %%rsp" ::: "rax", "memory", "cc")

static void atomic(void) { __asm__ volatile(TIMES("lock addq $1, %0\n") : "+m"(word)); }
static void unlock(void) { __asm__ volatile(TIMES("xor %%eax, %%eax\nlock cmpxchg %%ecx, %0\n") : "+m"(word) :: "rax", "cc"); }
static void direct(void) { RED_ZONE(TIMES("call nothing\n")); }
static void indirect(void) { RED_ZONE(TIMES("lea nothing(%%rip), %%rax\ncall retpoline\n")); }
static void user_0(void) { syscall(SYS_getcpu, 0, 0, 0); }
static void user_1(void) { syscall(SYS_getcpu, &cpu, 0, 0); }
static void user_2(void) { syscall(SYS_getcpu, &cpu, &node, 0); }
static void name(void) { snprintf(path, sizeof path, "%s/f%04d_%08u", "/tmp/tmp.0123456789/d000a", 0, serial++); }

static void moved(char *to, char *from)
{
    long bytes = BYTES;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) :: "memory");
}
static void overlap(void) { moved((char *)block, (char *)block + NEAR); }
static void apart(void) { moved((char *)block, (char *)block + 4 * NEAR); }

static void crc(void)
{
    uint64_t a = ~0u, b = 0, c = 0;
    for (int i = 0; i < BLOCK / 3; i++) {
        a = _mm_crc32_u64(a, block[i]);
        b = _mm_crc32_u64(b, block[i + BLOCK / 3]);
        c = _mm_crc32_u64(c, block[i + BLOCK / 3 * 2]);
    }
    sum += a + b + c;
}

static const struct { const char *what; void (*once)(void); int of; } loops[] = {
    {"atomic", atomic, TEN}, {"unlock", unlock, TEN}, {"direct call", direct, TEN}, {"call by a retpoline", indirect, TEN},
    {"getcpu, no address", user_0, 1}, {"getcpu, one address", user_1, 1}, {"getcpu, two addresses", user_2, 1},
    {"byte moved 25 down", overlap, BYTES}, {"byte moved 100 down", apart, BYTES},
    {"crc of 8 bytes", crc, BLOCK / 3 * 3}, {"a name of a file", name, 1},
};
enum { LOOPS = sizeof loops / sizeof *loops };

static double timed(int n, long times)
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (long i = 0; i < times; i++)
        loops[n].once();
    clock_gettime(CLOCK_MONOTONIC, &b);
    return (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int samples = argc > 2 ? atoi(argv[2]) : 400;
    double *taken[LOOPS];
    long times[LOOPS];
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(argc > 1 ? atoi(argv[1]) : 0, &here);
    if (sched_setaffinity(0, sizeof here, &here) || samples < 1)
        return 2;
    for (int n = 0; n < LOOPS; n++) {
        taken[n] = malloc((size_t)samples * sizeof(double));
        for (times[n] = 1; timed(n, times[n]) < LOOP_NS;)
            times[n] *= 2;
    }
    for (int s = 0; s < samples; s++)
        for (int n = 0; n < LOOPS; n++)
            taken[n][s] = timed(n, times[n]) / (double)times[n] / loops[n].of;
    for (int n = 0; n < LOOPS; n++) {
        qsort(taken[n], (size_t)samples, sizeof(double), rising);
        printf("%-22s %8.3f %8.3f %8.3f\n", loops[n].what, taken[n][samples / 10], taken[n][samples / 2], taken[n][samples * 9 / 10]);
    }
    return 0;
}
