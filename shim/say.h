/* Lines to stderr from inside somebody else's process: no stdio, no malloc, one write(2) per line.
 *
 * Formats: %s %c %d %u %x %p, with l, ll and z, a width with or without leading zeros, %.Nf (N up to 9), %%.
 * A line is cut at SAY_MAX bytes. errno is left alone. Any thread; async-signal-safe. */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#define SAY_MAX 1024

enum say_level { SAY_QUIET, SAY_ERROR, SAY_WARNING, SAY_INFO, SAY_DEBUG };

/* "reprise: ..." and a newline, if `level` is within config()->log_level. */
void say(enum say_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Would say(level, ...) print? */
bool say_is_on(enum say_level level);

/* Formats into out, always zero-terminated, and returns the length (less than bytes): what did not fit is cut. */
size_t say_format(char *out, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
size_t say_format_list(char *out, size_t bytes, const char *format, va_list list) __attribute__((format(printf, 3, 0)));

/* Writes all of it; retries after signals. False if the descriptor refused. */
bool say_write(int descriptor, const char *bytes, size_t count);

/* Says that a condition does not hold, and aborts. */
__attribute__((noreturn, cold)) void say_broken(const char *condition, const char *file, int line);

#define CHECK(condition) ((condition) ? (void)0 : say_broken(#condition, __FILE__, __LINE__))
#ifdef DEBUG
#define DCHECK(condition) CHECK(condition)
#else
#define DCHECK(condition) ((void)sizeof(condition))
#endif
