/* What calls.c and code.c do before what they time.
 *
 * BEFORE is one of
 *     BYTES         writes so many bytes of the program's own memory, a line after the other
 *     code=BYTES    runs so much code with a taken branch in each line
 *     random=BYTES  runs so much code with a branch in each 16 bytes, which goes at random
 *     pages=NUMBER  writes a line of each of so many pages
 *     spin=TIME     reads the clock for so many microseconds
 *     a command, which it runs,
 * or several with + between them. */
#ifndef BEFORE_H
#define BEFORE_H

enum { LINE = 64, PAGE = 4096 };

void check(int failed, const char *what);
double microseconds(void);
int compare(const void *one, const void *other);
void use_caches(const char *before);

#endif
