#include "tests/device/ptx_print.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LINE 4096

struct packed {
    const uint8_t *start;
    size_t at;
};

static uint64_t next_argument(struct packed *packed, size_t bytes)
{
    uint64_t value = 0;
    packed->at = (packed->at + bytes - 1) & ~(bytes - 1);
    memcpy(&value, packed->start + packed->at, bytes);
    packed->at += bytes;
    return value;
}

/* Copies one conversion, from its % to its letter, without length marks; '*' is replaced by its argument. */
static const char *read_conversion(const char *from, char conversion[64], bool *is_long, struct packed *packed,
                                   int *count)
{
    size_t used = 0;
    *is_long = false;
    do {
        char c = *from++;
        if (c == 'l' || c == 'j' || c == 'z' || c == 't') {
            *is_long = true;
        } else if (c == '*') {
            int32_t width = (int32_t)next_argument(packed, 4);
            used += (size_t)snprintf(conversion + used, 12, "%d", width);
            ++*count;
        } else if (c != 'h') {
            conversion[used++] = c;
        }
        if (strchr("diouxXcspaAeEfFgG%", c) && used > 1)
            break;
    } while (*from && used < 40);
    conversion[used] = 0;
    return from;
}

static int print_integer(char *out, size_t room, char *conversion, bool is_long, struct packed *packed)
{
    size_t end = strlen(conversion) - 1;
    char letter = conversion[end];
    memcpy(conversion + end, (char[]){'l', 'l', letter, 0}, 4);
    if (is_long)
        return snprintf(out, room, conversion, (unsigned long long)next_argument(packed, 8));
    uint32_t value = (uint32_t)next_argument(packed, 4);
    bool is_signed = letter == 'd' || letter == 'i';
    return is_signed ? snprintf(out, room, conversion, (long long)(int32_t)value)
                     : snprintf(out, room, conversion, (unsigned long long)value);
}

static int print_argument(char *out, size_t room, char *conversion, bool is_long, struct packed *packed)
{
    char letter = conversion[strlen(conversion) - 1];
    if (strchr("diouxX", letter))
        return print_integer(out, room, conversion, is_long, packed);
    if (letter == 'c')
        return snprintf(out, room, conversion, (int)next_argument(packed, 4));
    if (letter == 's')
        return snprintf(out, room, conversion, (const char *)next_argument(packed, 8));
    if (letter == 'p')
        return snprintf(out, room, conversion, (void *)next_argument(packed, 8));
    uint64_t bits = next_argument(packed, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return snprintf(out, room, conversion, value);
}

int ptx_print(const char *format, const void *arguments)
{
    char out[LINE], conversion[64];
    size_t used = 0;
    int count = 0;
    struct packed packed = {arguments, 0};
    while (*format && used < LINE - 1) {
        bool is_long;
        if (*format != '%') {
            out[used++] = *format++;
            continue;
        }
        format = read_conversion(format, conversion, &is_long, &packed, &count);
        char letter = conversion[strlen(conversion) - 1];
        if (letter == '%' && strlen(conversion) > 1) {
            out[used++] = '%';
            continue;
        }
        if (!strchr("diouxXcspaAeEfFgG", letter))
            return -1;
        int wrote = print_argument(out + used, LINE - used, conversion, is_long, &packed);
        used += wrote < 0 ? 0 : (size_t)wrote < LINE - used ? (size_t)wrote : LINE - used - 1;
        count++;
    }
    fwrite(out, 1, used, stdout);
    fflush(stdout);
    return count;
}
