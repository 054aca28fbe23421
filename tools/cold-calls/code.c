/* What code of the C library takes when caches and branch predictors were used for something else before.
 *
 *     code BEFORE...
 *
 * BEFORE is what the program does before each turn; before.h says what it can. A turn runs some functions, each of them once or a few
 * times, as a system call runs the kernel's. Prints the quartiles of a turn in microseconds. Bind it to a CPU.
 * code --count runs just some turns: valgrind --tool=callgrind --dump-instr=yes --toggle-collect=work lists the instructions of their
 * lines of code, 1,546 with glibc 2.36, linked with -z now. */
#define _GNU_SOURCE
#include "before.h"

#include <argz.h>
#include <arpa/inet.h>
#include <fnmatch.h>
#include <regex.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wordexp.h>

enum { TURNS = 61, NUMBERS = 20 };

static int by_value(const void *one, const void *other) { return *(const int *)one - *(const int *)other; }

static int by_name(const void *one, const void *other) { return strcmp(one, other); }

static void search(char *text, size_t size)
{
    regex_t expression;
    regmatch_t found[3];
    check(regcomp(&expression, "a[b-d]*(x|y)+$", REG_EXTENDED), "regcomp");
    regexec(&expression, "zzabbcxy", 3, found, 0);
    regfree(&expression);
    fnmatch("*.[ch]", "directory/file.c", 0);
    check(!memmem(text, size, "", 0), "memmem");
}

static void tell_time(char *text, size_t size)
{
    struct tm about = {0};
    strptime("2026-11-27 10:11:12", "%Y-%m-%d %H:%M:%S", &about);
    time_t then = timegm(&about);
    gmtime_r(&then, &about);
    strftime(text, size, "%a %b %d %j %U %H:%M:%S %Y", &about);
}

static void print(char *text, size_t size)
{
    double real;
    int whole;
    unsigned char address[16];
    snprintf(text, size, "%d %s %.5g %lx %10.3f %c", 5, "five", 3.14159, 255l, 2.5e3, 'x');
    sscanf("17 2.5e-3 word", "%d %lf %s", &whole, &real, text);
    inet_pton(AF_INET6, "fe80::1:2", address);
    inet_ntop(AF_INET6, address, text, (socklen_t)size);
    FILE *file = fmemopen(text, size, "w");
    check(!file, "fmemopen");
    fprintf(file, "%d", 3);
    fclose(file);
}

static void arrange(void)
{
    static char *const names[] = {"one", "two", "three", "four", "five"};
    int numbers[NUMBERS];
    void *root = 0;
    char *words;
    size_t length;
    wordexp_t expanded;
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = i * 7 % NUMBERS;
    qsort(numbers, NUMBERS, sizeof *numbers, by_value);
    for (int i = 0; i < 5; i++)
        tsearch(names[i], &root, by_name);
    for (int i = 0; i < 5; i++)
        tdelete(names[i], &root, by_name);
    argz_create_sep("a:b:c", ':', &words, &length);
    argz_stringify(words, length, ',');
    free(words);
    if (!wordexp("a ${HOME}/b 'c d'", &expanded, WRDE_NOCMD))
        wordfree(&expanded);
}

__attribute__((noinline)) void work(void)
{
    static char text[400];
    search(text, sizeof text);
    tell_time(text, sizeof text);
    print(text, sizeof text);
    arrange();
}

int main(int argc, char **argv)
{
    int kinds = argc - 1;
    double *took = calloc((size_t)argc * TURNS, sizeof *took);
    check(!took, "calloc");
    for (int i = 0; i < 3; i++)
        work();
    if (kinds == 1 && !strcmp(argv[1], "--count"))
        return 0;
    for (int i = 0; i < TURNS; i++)
        for (int kind = 0; kind < kinds; kind++) {
            work();
            work();
            use_caches(argv[1 + kind]);
            double began = microseconds();
            work();
            took[kind * TURNS + i] = microseconds() - began;
        }
    for (int kind = 0; kind < kinds; kind++) {
        double *of = took + kind * TURNS;
        qsort(of, TURNS, sizeof *of, compare);
        printf("%s,%.2f,%.2f,%.2f\n", argv[1 + kind], of[TURNS / 4], of[TURNS / 2], of[TURNS * 3 / 4]);
    }
    return 0;
}
