/* The loops of tools/file-operations as kinds: `own:LOOP` in a directory for each task, `one:LOOP` all in one. */
#define main operations_main
#define shared operations_shared
#define die operations_die
#include "../../file-operations/operations.c"
#undef main
#undef shared
#undef die
#include "load.h"

static void (*looped)(void);
static int directories;

static void prepare_loop(const char *dir, int number)
{
    task = number;
    seed = (unsigned)number + 1;
    prepare(dir, directories);
}

static void go_through_loop(const char *dir, int number, long n)
{
    (void)dir, (void)number, (void)n;
    looped();
}

static struct kind operation = {0, prepare_loop, go_through_loop};

const struct kind *operation_kind(const char *name)
{
    directories = !strncmp(name, "own:", 4);
    if (!directories && strncmp(name, "one:", 4))
        return 0;
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        if (!strcmp(loops[i].name, name + 4)) {
            operation.name = name;
            looped = loops[i].once;
            return &operation;
        }
    return 0;
}
