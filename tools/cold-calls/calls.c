/* What create, write, close, unlink, and stat of a file that is there take when the caches were used for something else before.
 *
 *     calls DIRECTORY ROUNDS [BEFORE...]
 *
 * BEFORE is what the program does before each turn; before.h says what it can.
 * A round has some turns of each BEFORE, one BEFORE after the other, so that a host whose clock changes is as fast for all of them.
 * Prints the quartiles of each call in microseconds. Bind it to a CPU. */
#define _GNU_SOURCE
#include "before.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CREATE, WRITE, CLOSE, UNLINK, STAT, CALLS };
static const char *const names[CALLS] = {"create", "write", "close", "unlink", "stat"};
enum { SMALL = 465, SETTLE = 5, TURNS = 20 };

static char content[SMALL], existing[300];
static const char *directory;

static void turn(const char *before, double *took)
{
    static int number;
    char path[300];
    struct stat about;
    double at[5];
    snprintf(path, sizeof path, "%s/f%08d", directory, number++);
    use_caches(before);
    at[0] = microseconds();
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
    at[1] = microseconds();
    check(fd < 0 || write(fd, content, SMALL) != SMALL, path);
    at[2] = microseconds();
    close(fd);
    at[3] = microseconds();
    check(unlink(path), path);
    at[4] = microseconds();
    for (int call = CREATE; call <= UNLINK; call++)
        took[call] = at[call + 1] - at[call];
    use_caches(before);
    at[0] = microseconds();
    check(stat(existing, &about), existing);
    took[STAT] = microseconds() - at[0];
}

int main(int argc, char **argv)
{
    int rounds = argc > 3 ? atoi(argv[2]) : 0, kinds = argc - 3, turns = rounds * TURNS;
    if (rounds < 1) {
        fprintf(stderr, "calls DIRECTORY ROUNDS BEFORE...\n");
        return 2;
    }
    directory = argv[1];
    double *took = calloc((size_t)kinds * CALLS * (size_t)turns, sizeof *took);
    check(!took, "calloc");
    snprintf(existing, sizeof existing, "%s/there", directory);
    close(open(existing, O_CREAT | O_RDWR, 0600));
    for (int round = 0; round < rounds; round++)
        for (int kind = 0; kind < kinds; kind++)
            for (int i = -SETTLE; i < TURNS; i++) {
                double one[CALLS];
                turn(argv[3 + kind], one);
                for (int call = 0; i >= 0 && call < CALLS; call++)
                    took[(kind * CALLS + call) * turns + round * TURNS + i] = one[call];
            }
    for (int row = 0; row < kinds * CALLS; row++) {
        double *of = took + (size_t)row * (size_t)turns;
        qsort(of, (size_t)turns, sizeof *of, compare);
        printf("%s,%s,%.2f,%.2f,%.2f\n", argv[3 + row / CALLS], names[row % CALLS], of[turns / 4], of[turns / 2],
               of[turns * 3 / 4]);
    }
    return 0;
}
