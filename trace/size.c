#include "trace/size.h"
#include <stddef.h>
#include <string.h>

static const struct unit {
    const char *name;
    uint64_t bytes;
} units[] = {
    {"", 1},
    {"B", 1},
    {"KB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", 1000000000000},
    {"K", 1ull << 10},
    {"M", 1ull << 20},
    {"G", 1ull << 30},
    {"T", 1ull << 40},
    {"KiB", 1ull << 10},
    {"MiB", 1ull << 20},
    {"GiB", 1ull << 30},
    {"TiB", 1ull << 40},
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const struct unit *find_unit(const char *name)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].name, name) == 0)
            return &units[i];
    return NULL;
}

bool size_parse(const char *text, uint64_t *bytes)
{
    unsigned __int128 number = 0, scale = 1;
    if (!is_digit(*text))
        return false;
    for (; is_digit(*text); text++) {
        number = number * 10 + (unsigned)(*text - '0');
        if (number >> 63)
            return false;
    }
    if (*text == '.') {
        if (!is_digit(*++text))
            return false;
        for (; is_digit(*text); text++) {
            if (scale == 1000000000)
                continue; /* below a byte in any unit that matters */
            number = number * 10 + (unsigned)(*text - '0');
            scale *= 10;
        }
    }
    const struct unit *unit = find_unit(text);
    if (!unit)
        return false;
    unsigned __int128 product = number * unit->bytes / scale;
    if (product == 0 || product >> 63)
        return false;
    *bytes = (uint64_t)product;
    return true;
}
