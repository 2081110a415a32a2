/* The data of the page: JSON, and arrays of figures in base64. Nothing that it writes can end the element it stands in:
 * '<' is always escaped. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

void html_string(FILE *out, const char *text);
/* A finite number that JSON knows; others are 0. */
void html_number(FILE *out, double number);

enum html_type { HTML_U8, HTML_U32, HTML_F64 };

/* "name":{"type":...,"data":...} from figures that come one by one, little-endian. */
struct html_array {
    FILE *out;
    unsigned char bytes[3072];
    size_t count;
};

void html_array_begin(struct html_array *array, FILE *out, const char *name, enum html_type type);
void html_array_u8(struct html_array *array, uint8_t value);
void html_array_u32(struct html_array *array, uint32_t value);
void html_array_f64(struct html_array *array, double value);
void html_array_end(struct html_array *array);
