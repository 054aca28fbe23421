"""What a return by a thunk takes more than one without, in ns: a tree of functions, compiled with and without thunks.

returns.py [CPU]; needs gcc. Each of 300 functions has some 25 instructions and returns once. A thunk is a return in a
line of its own, to which functions jump, as in kernels with the mitigation "Aligned branch/return thunks"
(`its_return_thunk` of 6.12.30). Prints 5th percentiles and medians of 2,000 turns.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

FUNCTIONS = 300
WORDS = 512
FLAGS = ("-O2", "-fno-inline", "-fno-ipa-icf", "-fno-optimize-sibling-calls", "-fcf-protection=none", "-c")
MAIN = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { TURNS = 2000, WARM = 3, TIMES = 20, WORDS = 512 };
uint64_t w[WORDS], plain0(uint64_t, uint64_t), thunk0(uint64_t, uint64_t);
__asm__(".text\n.p2align 6\n.globl __x86_return_thunk\n__x86_return_thunk: ret\nint3\n");
static int rising(const void *a, const void *b) { double x = *(double *)a, y = *(double *)b; return (x > y) - (x < y); }
static double timed(uint64_t (*tree)(uint64_t, uint64_t))
{
    struct timespec a, b;
    memset(w, 0, sizeof w);
    for (int i = 0; i < WARM; i++) tree(1, 2);
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < TIMES; i++) tree(1, 2);
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / TIMES;
}
int main(int argc, char **argv)
{
    static double taken[2][TURNS];
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(argc > 1 ? atoi(argv[1]) : 0, &here);
    if (sched_setaffinity(0, sizeof here, &here)) return 2;
    for (int i = 0; i < TURNS; i++) {
        taken[0][i] = timed(plain0);
        taken[1][i] = timed(thunk0);
    }
    for (int k = 0; k < 2; k++) qsort(taken[k], TURNS, sizeof(double), rising);
    for (int at = TURNS / 20; at <= TURNS / 2; at += TURNS * 9 / 20)
        printf("all %.1f, with thunks %.1f ns; a return %.3f\n", taken[0][at], taken[1][at],
               (taken[1][at] - taken[0][at]) / 300);
}
"""


def main(cpu: str) -> None:
    """Compile both and run them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "main.c").write_text(MAIN)
        for kind, flags in (("plain", ()), ("thunk", ("-mfunction-return=thunk-extern",))):
            (folder / f"{kind}.c").write_text("\n".join(tree(kind)))
            subprocess.run(["gcc", *FLAGS, *flags, f"{kind}.c"], cwd=folder, check=True)
        subprocess.run(["gcc", "-O2", "-o", "trees", "main.c", "plain.o", "thunk.o"], cwd=folder, check=True)
        subprocess.run([folder / "trees", cpu], check=True)


def tree(kind: str) -> Iterator[str]:
    """Yield C of functions that call two others each; always the same but for their names."""
    draw = random.Random(1)
    yield f"#include <stdint.h>\nextern uint64_t w[{WORDS}];"
    yield from (f"uint64_t {kind}{n}(uint64_t a, uint64_t b);" for n in range(FUNCTIONS))
    for n in range(FUNCTIONS):
        lines = [statement(draw) for _ in range(draw.randint(2, 6))]
        if 2 * n + 2 < FUNCTIONS:
            lines += [f"a += {kind}{2 * n + 1}(a, b);", "b ^= a;", f"b += {kind}{2 * n + 2}(b, a);"]
        lines += [f"w[{draw.randrange(WORDS)}] += b;" for _ in range(draw.randint(1, 3))]
        yield "\n".join((f"uint64_t {kind}{n}(uint64_t a, uint64_t b) {{", *lines, "return a ^ b; }"))


def statement(draw: random.Random) -> str:
    """Return one of some ordinary statements."""
    word = draw.randrange(WORDS)
    return draw.choice(
        (
            f"a += w[{word}] ^ b;",
            f"b = (b >> {draw.randint(1, 9)}) + a;",
            f"w[{word}] = a + {word};",
            f"if (a & {1 << draw.randint(0, 3)}) b += {word}; else w[{word}]++;",
            f"a ^= b << {draw.randint(1, 7)};",
        )
    )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "0")
