#include "trace/html_data.h"
#include "trace/report.h"
#include <math.h>

void html_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        size_t count = report_character_bytes((const char *)at);
        bool is_plain =
            *at >= 0x20 && *at < 0x7f && *at != '"' && *at != '\\' && *at != '<' && *at != '>' && *at != '&';
        if (count == 0)
            fputs("\\ufffd", out);
        else if (count == 1 && !is_plain)
            fprintf(out, "\\u%04x", *at);
        else
            fwrite(at, 1, count, out);
        at += count ? count : 1;
    }
    fputc('"', out);
}

void html_number(FILE *out, double number)
{
    fprintf(out, "%.17g", isfinite(number) ? number : 0.0);
}

static void put_base64(FILE *out, const unsigned char *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[4096];
    size_t used = 0;
    for (size_t i = 0; i < count; i += 3) {
        uint32_t group = (uint32_t)bytes[i] << 16;
        group |= i + 1 < count ? (uint32_t)bytes[i + 1] << 8 : 0;
        group |= i + 2 < count ? bytes[i + 2] : 0;
        text[used++] = digits[group >> 18];
        text[used++] = digits[group >> 12 & 63];
        text[used++] = i + 1 < count ? digits[group >> 6 & 63] : '=';
        text[used++] = i + 2 < count ? digits[group & 63] : '=';
    }
    fwrite(text, 1, used, out);
}

void html_array_begin(struct html_array *array, FILE *out, const char *name, enum html_type type)
{
    static const char *const types[] = {"u8", "u32", "f64"};
    array->out = out;
    array->count = 0;
    fprintf(out, "\"%s\":{\"type\":\"%s\",\"data\":\"", name, types[type]);
}

static void add(struct html_array *array, const void *value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        array->bytes[array->count++] = ((const unsigned char *)value)[i];
        if (array->count == sizeof array->bytes) {
            put_base64(array->out, array->bytes, array->count);
            array->count = 0;
        }
    }
}

void html_array_u8(struct html_array *array, uint8_t value)
{
    add(array, &value, sizeof value);
}

void html_array_u32(struct html_array *array, uint32_t value)
{
    add(array, &value, sizeof value);
}

void html_array_f64(struct html_array *array, double value)
{
    add(array, &value, sizeof value);
}

void html_array_end(struct html_array *array)
{
    put_base64(array->out, array->bytes, array->count);
    fputs("\"}", array->out);
}
