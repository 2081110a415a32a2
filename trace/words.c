/* Sizes, times and names as a reader knows them: declared in trace/report.h. */
#include "trace/report.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *report_size(uint64_t bytes, char *buffer)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double size = (double)bytes;
    unsigned unit = 0;
    while (size >= 1024 && unit < 4) {
        size /= 1024;
        unit++;
    }
    snprintf(buffer, 16, unit ? "%.1f %s" : "%.0f %s", size, units[unit]);
    return buffer;
}

const char *report_time(double seconds, char *buffer)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    double time = seconds * 1e9;
    unsigned unit = 0;
    while (time >= 999.95 && unit < 3) {
        time /= 1000;
        unit++;
    }
    snprintf(buffer, 16, unit ? "%.1f %s" : "%.0f %s", time, units[unit]);
    return buffer;
}

void report_plain_name(const char *mangled, char *out, size_t bytes)
{
    size_t used = 0;
    const char *at = mangled;
    bool is_nested = strncmp(at, "_ZN", 3) == 0;
    if (strncmp(at, "_Z", 2) == 0)
        at += is_nested ? 3 : 2;
    /* Without N there is one name; what follows it are the parameters' types. */
    for (bool is_first = true; isdigit((unsigned char)*at) && (is_nested || is_first); is_first = false) {
        char *end;
        unsigned long length = strtoul(at, &end, 10);
        if (length == 0 || length > strlen(end))
            break;
        int put = snprintf(out + used, bytes - used, "%s%.*s", used ? "::" : "", (int)length, end);
        used = used + (size_t)put < bytes ? used + (size_t)put : bytes - 1;
        at = end + length;
    }
    if (used == 0)
        snprintf(out, bytes, "%s", mangled);
}

size_t report_character_bytes(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    if (at[0] < 0x80)
        return at[0] ? 1 : 0;
    size_t count = at[0] >= 0xf0 && at[0] <= 0xf4  ? 4
                   : at[0] >= 0xe0 && at[0] < 0xf0 ? 3
                   : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
                                                   : 0;
    for (size_t i = 1; i < count; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    bool is_short = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    bool is_none = (at[0] == 0xed && at[1] >= 0xa0) || (at[0] == 0xf4 && at[1] >= 0x90);
    return is_short || is_none ? 0 : count;
}
