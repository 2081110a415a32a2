#include "shim/say.h"

#include "shim/config.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct text {
    char *out;
    size_t used, capacity; /* used < capacity, room for the final zero is kept */
};

struct conversion {
    unsigned width, precision, longs; /* longs: 0 int, 1 long or size_t, 2 long long */
    bool has_zeros;
};

static void put(struct text *text, char c)
{
    if (text->used + 1 < text->capacity)
        text->out[text->used++] = c;
}

static void put_string(struct text *text, const char *string)
{
    for (string = string ? string : "(null)"; *string; string++)
        put(text, *string);
}

static void put_number(struct text *text, uint64_t value, unsigned base, const struct conversion *how, bool is_negative)
{
    char digits[24];
    unsigned count = 0;
    do
        digits[count++] = "0123456789abcdef"[value % base];
    while (value /= base);
    unsigned used = count + is_negative;
    if (is_negative && how->has_zeros)
        put(text, '-');
    for (; used < how->width; used++)
        put(text, how->has_zeros ? '0' : ' ');
    if (is_negative && !how->has_zeros)
        put(text, '-');
    while (count)
        put(text, digits[--count]);
}

static void put_fraction(struct text *text, double value, const struct conversion *how)
{
    unsigned places = how->precision < 9 ? how->precision : 9;
    uint64_t scale = 1;
    for (unsigned i = 0; i < places; i++)
        scale *= 10;
    bool is_negative = value < 0;
    value = is_negative ? -value : value;
    if (!(value < 1e9)) {
        put_string(text, value != value ? "nan" : is_negative ? "-big" : "big");
        return;
    }
    uint64_t scaled = (uint64_t)(value * (double)scale + 0.5);
    struct conversion whole = {.width = how->width > places + 1 ? how->width - places - 1 : 0};
    put_number(text, scaled / scale, 10, &whole, is_negative);
    if (places) {
        struct conversion rest = {.width = places, .has_zeros = true};
        put(text, '.');
        put_number(text, scaled % scale, 10, &rest, false);
    }
}

static const char *read_conversion(const char *at, struct conversion *how)
{
    *how = (struct conversion){.precision = 6};
    if (*at == '0')
        how->has_zeros = true;
    for (; *at >= '0' && *at <= '9'; at++)
        how->width = how->width * 10 + (unsigned)(*at - '0');
    if (*at == '.')
        for (at++, how->precision = 0; *at >= '0' && *at <= '9'; at++)
            how->precision = how->precision * 10 + (unsigned)(*at - '0');
    for (; *at == 'l'; at++)
        how->longs++;
    if (*at == 'z') {
        how->longs = 1;
        at++;
    }
    return at;
}

static uint64_t next_unsigned(va_list *list, unsigned longs)
{
    return longs == 0   ? va_arg(*list, unsigned)
           : longs == 1 ? va_arg(*list, unsigned long)
                        : va_arg(*list, unsigned long long);
}

static int64_t next_signed(va_list *list, unsigned longs)
{
    return longs == 0 ? va_arg(*list, int) : longs == 1 ? va_arg(*list, long) : va_arg(*list, long long);
}

static void convert(struct text *text, char kind, const struct conversion *how, va_list *list)
{
    switch (kind) {
    case 's':
        put_string(text, va_arg(*list, const char *));
        break;
    case 'c':
        put(text, (char)va_arg(*list, int));
        break;
    case 'd':
    case 'i': {
        int64_t value = next_signed(list, how->longs);
        put_number(text, value < 0 ? -(uint64_t)value : (uint64_t)value, 10, how, value < 0);
        break;
    }
    case 'u':
        put_number(text, next_unsigned(list, how->longs), 10, how, false);
        break;
    case 'x':
        put_number(text, next_unsigned(list, how->longs), 16, how, false);
        break;
    case 'p':
        put_string(text, "0x");
        put_number(text, (uintptr_t)va_arg(*list, void *), 16, how, false);
        break;
    case 'f':
        put_fraction(text, va_arg(*list, double), how);
        break;
    default:
        put(text, kind);
    }
}

size_t say_format_list(char *out, size_t bytes, const char *format, va_list list)
{
    if (bytes == 0)
        return 0;
    struct text text = {.out = out, .capacity = bytes};
    va_list arguments;
    va_copy(arguments, list);
    for (; *format; format++) {
        if (*format != '%') {
            put(&text, *format);
            continue;
        }
        struct conversion how;
        format = read_conversion(format + 1, &how);
        if (*format == 0)
            break;
        convert(&text, *format, &how, &arguments);
    }
    va_end(arguments);
    out[text.used] = 0;
    return text.used;
}

size_t say_format(char *out, size_t bytes, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    size_t length = say_format_list(out, bytes, format, list);
    va_end(list);
    return length;
}

bool say_write(int descriptor, const char *bytes, size_t count)
{
    while (count) {
        ssize_t written = write(descriptor, bytes, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes += written;
        count -= (size_t)written;
    }
    return true;
}

bool say_is_on(enum say_level level)
{
    return (int)level <= config()->log_level;
}

void say(enum say_level level, const char *format, ...)
{
    if (!say_is_on(level))
        return;
    int saved = errno;
    char line[SAY_MAX];
    size_t used = say_format(line, sizeof line, "reprise: ");
    va_list list;
    va_start(list, format);
    used += say_format_list(line + used, sizeof line - used - 1, format, list);
    va_end(list);
    line[used++] = '\n';
    say_write(STDERR_FILENO, line, used);
    errno = saved;
}

void say_broken(const char *condition, const char *file, int line)
{
    char text[SAY_MAX];
    size_t used = say_format(text, sizeof text, "reprise: internal check failed: %s (%s:%d)\n", condition, file, line);
    say_write(STDERR_FILENO, text, used);
    abort();
}
