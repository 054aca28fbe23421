#define _GNU_SOURCE
#include "before.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GROUP = 16 };

void check(int failed, const char *what)
{
    if (failed) {
        perror(what);
        exit(1);
    }
}

double microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

int compare(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static void run(const char *command)
{
    char words[300], *arguments[16] = {0};
    int n = 0, status;
    snprintf(words, sizeof words, "%s", command);
    for (char *word = strtok(words, " "); word && n < 15; word = strtok(0, " "))
        arguments[n++] = word;
    pid_t child = vfork();
    if (!child) {
        execvp(arguments[0], arguments);
        _exit(127);
    }
    check(child < 0 || waitpid(child, &status, 0) != child || status, command);
}

/* Memory that stays, for the most bytes that were ever asked for, made of copies of `content`. */
struct memory {
    unsigned char *at;
    size_t bytes;
};

static unsigned char *memory(struct memory *of, size_t bytes, const unsigned char *content, size_t length)
{
    if (bytes <= of->bytes)
        return of->at;
    if (of->at)
        munmap(of->at, of->bytes);
    of->at = mmap(0, of->bytes = bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(of->at == MAP_FAILED, "mmap");
    for (size_t at = 0; at < bytes; at++)
        of->at[at] = content[at % length];
    return of->at;
}

static void touch(size_t bytes, size_t step)
{
    static struct memory walked;
    static const unsigned char content[1] = {1};
    unsigned char *from = memory(&walked, bytes, content, sizeof content);
    for (size_t at = 0; at < bytes; at += step)
        ((volatile unsigned char *)from)[at]++;
}

/* Runs code that is made of copies of `part`, and ends behind so many bytes. `rax` is what its branches look at. */
static void run_code(struct memory *of, size_t bytes, const unsigned char *part, size_t length, unsigned long rax)
{
    static const unsigned char ret = 0xc3;
    if (bytes < length)
        return;
    unsigned char *code = memory(of, bytes, part, length), *last = code + (bytes - length) / length * length, kept = *last;
    *last = ret;
    __asm__ volatile("test %0, %0; call *%1" : "+a"(rax) : "r"(code) : "memory", "cc");
    *last = kept;
}

/* jnz to the next line */
static void run_branches(size_t bytes)
{
    static struct memory code;
    static const unsigned char part[LINE] = {0x75, LINE - 2};
    run_code(&code, bytes, part, sizeof part, 1);
}

/* ror $1, %rax; jc over a jump; jmp to the next group */
static void run_random(size_t bytes)
{
    static struct memory code;
    static unsigned long bits = 88172645463325252;
    static const unsigned char part[GROUP] = {0x48, 0xd1, 0xc8, 0x72, 4, 0x0f, 0x1f, 0x40, 0, 0xeb, 5, 0x90, 0x90, 0x90, 0x90, 0x90};
    bits ^= bits << 13;
    bits ^= bits >> 7;
    bits ^= bits << 17;
    run_code(&code, bytes, part, sizeof part, bits);
}

static void spin(double time)
{
    for (double until = microseconds() + time; microseconds() < until;)
        ;
}

static void use(const char *before)
{
    const char *is = strchr(before, '=');
    size_t number = strtoul(is ? is + 1 : before, 0, 10);
    if (isdigit((unsigned char)*before))
        touch(number, LINE);
    else if (!strncmp(before, "code=", 5))
        run_branches(number);
    else if (!strncmp(before, "random=", 7))
        run_random(number);
    else if (!strncmp(before, "pages=", 6))
        touch(number * PAGE, PAGE + LINE);
    else if (!strncmp(before, "spin=", 5))
        spin((double)number);
    else
        run(before);
}

void use_caches(const char *before)
{
    char words[300], *left;
    snprintf(words, sizeof words, "%s", before);
    for (char *word = strtok_r(words, "+", &left); word; word = strtok_r(0, "+", &left))
        use(word);
}
