/* The loads of the laboratory: one static program, a file for each kind. Times are seconds, work is instructions. */
#ifndef LOAD_H
#define LOAD_H
#define _GNU_SOURCE
#include <sys/types.h>

#define MAX_TASKS 256

/* Memory that all processes of a run share; a counter has a cache line of its own, though lines are free here. */
struct shared {
    volatile int go;
    struct {
        volatile long operations;
        char rest[56];
    } task[MAX_TASKS];
};

/* A kind of load: what one process does in a loop, given its own directory and number. */
struct kind {
    const char *name;
    void (*prepare)(const char *dir, int task); /* once, before the measurement; may be null */
    void (*operation)(const char *dir, int task, long n);
};

extern const struct kind file_kinds[];
const struct kind *operation_kind(const char *name); /* of operations.c, or null */
const struct kind *readers_kind(const char *name);   /* of readers.c, or null */
extern int readers;                                  /* the first so many tasks of that only read */
void compile_operation(const char *dir, int task, long n);
int compile_role(char **argv); /* "driver", "compiler" or "assembler": the processes of one compile */

int wake_main(int argc, char **argv);  /* hog, chain, forks: the scheduler without a filesystem */
int micro_main(void);                  /* what single events cost, in instructions */
int idle_main(char **argv);            /* wake-ups while a CPU goes idle */
int steps_main(int argc, char **argv); /* operations whose instructions are logged */

void die(const char *what);
void tracing(int on);    /* where the environment has TRACE */
void log_blocks(int on); /* of instructions, by the emulator */
void end_of_boot(void);  /* from now on the emulator's rounds are as short as the plan says */
double now(void);
void burn(long instructions);
void pin(int cpu);
void *shared_memory(unsigned long size);
long parameter(const char *name, long otherwise); /* of the environment */
void spawn(char *const argv[]);                   /* vfork, exec of this program, wait */
void percentiles(const char *head, double *values, int n);
#endif
