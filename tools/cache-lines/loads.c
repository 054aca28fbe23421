/* Who has a cache line after a load: two CPUs take turns, four to a round, and each access is timed by itself.
 *
 * A round is written as four letters, for CPU 0, 1, 0 and 1: x an atomic addition, l a load, c a compare-and-exchange behind a load (of
 * which only the exchange is timed), . nothing. No access is made by speculation: fences stand before and behind each. Printed are
 * medians of cycles of the TSC, the middle of nine lines.
 *
 * gcc -O2 -Wall -pthread loads.c -o loads && ./loads */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

enum { ROUNDS = 1500, TURNS = 4, LINES = 9, APART = 256 };

typedef struct {
    volatile uint64_t word;
} __attribute__((aligned(APART))) Line;

static Line lines[1024], turns[LINES], starts;
static volatile int chosen, which;
static uint32_t took[TURNS][ROUNDS];

#define ADD(p) __sync_fetch_and_add(p, 1)
#define LOAD(p) (void)*(p)
#define NOTHING(p) (void)(p)

#define TIMED(turn, access)                                             \
    _mm_mfence();                                                       \
    _mm_lfence();                                                       \
    before = __rdtsc();                                                 \
    _mm_lfence();                                                       \
    access;                                                             \
    _mm_lfence();                                                       \
    took[turn][i] = (uint32_t)(__rdtsc() - before);

#define DO_x(turn) TIMED(turn, ADD(word))
#define DO_l(turn) TIMED(turn, LOAD(word))
#define DO_n(turn) TIMED(turn, NOTHING(word))
#define DO_c(turn)                                                      \
    found = *word;                                                      \
    _mm_lfence();                                                       \
    TIMED(turn, __atomic_compare_exchange_n(word, &found, found + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))

#define TURN(turn, what)                                                \
    while (*now != (uint64_t)(TURNS * i + turn)) {                      \
    }                                                                   \
    _mm_lfence();                                                       \
    DO_##what(turn) *now = (uint64_t)(TURNS * i + turn + 1);

#define CPU(name, first, a, b)                                          \
    static void name(void)                                              \
    {                                                                   \
        volatile uint64_t *now = &turns[chosen % LINES].word, *word = &lines[chosen].word; \
        uint64_t before, found = 0;                                     \
        (void)found;                                                    \
        for (int i = 0; i < ROUNDS; i++) {                              \
            TURN(first, a)                                              \
            TURN(first + 2, b)                                          \
        }                                                               \
    }

#define ROUND(a, b, c, d) CPU(a##b##c##d##_0, 0, a, c) CPU(a##b##c##d##_1, 1, b, d)
#define NAMED(a, b, c, d) {#a #b #c #d, {a##b##c##d##_0, a##b##c##d##_1}}

ROUND(x, n, x, n) ROUND(x, x, x, x) ROUND(c, c, c, c) ROUND(x, l, n, x) ROUND(x, l, l, n) ROUND(x, l, l, l)

static const struct {
    const char *name;
    void (*run[2])(void);
} rounds[] = {NAMED(x, n, x, n), NAMED(x, x, x, x), NAMED(c, c, c, c), NAMED(x, l, n, x), NAMED(x, l, l, n), NAMED(x, l, l, l)};

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        exit(1);
}

static void *other(void *unused)
{
    pin(1);
    for (uint64_t start = 1;; start++) {
        while (starts.word != start) {
        }
        rounds[which].run[1]();
    }
    return unused;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static uint32_t median(uint32_t *of, size_t many)
{
    qsort(of, many, sizeof *of, compare);
    return of[many / 2];
}

int main(void)
{
    pthread_t thread;
    uint64_t start = 0;
    pin(0);
    if (pthread_create(&thread, 0, other, 0))
        return 1;
    for (size_t r = 0; r < sizeof rounds / sizeof *rounds; r++) {
        uint32_t medians[TURNS][LINES];
        for (int line = 0; line < LINES; line++) {
            chosen = 100 * line + line;
            turns[chosen % LINES].word = 0;
            which = (int)r;
            starts.word = ++start;
            rounds[r].run[0]();
            while (turns[chosen % LINES].word < TURNS * ROUNDS) {
            }
            for (int turn = 0; turn < TURNS; turn++)
                medians[turn][line] = median(took[turn], ROUNDS);
        }
        for (int turn = 0; turn < TURNS; turn++)
            printf("%c %u%s", rounds[r].name[turn] == 'n' ? '.' : rounds[r].name[turn], median(medians[turn], LINES), turn < 3 ? ", " : "\n");
    }
    return 0;
}
