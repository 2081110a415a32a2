/* Lines of a page that must fit: columns by characters, names made harmless, colours only where wanted. */
#pragma once
#include "trace/terminal.h"
#include <stdarg.h>

struct page {
    FILE *out;
    struct terminal terminal;
    unsigned column; /* characters of the current line so far */
    unsigned lines;  /* ended so far */
};

/* Like printf, cut at the right edge; no newline. Bytes that a terminal acts upon become '?'. */
void page_put(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Like printf, going on in new lines, two columns to the right, where the edge comes; ends the line. */
void page_wrap(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* `text` in exactly `width` columns: cut with ".." or filled with blanks. */
void page_fit(struct page *page, const char *text, unsigned width);
void page_fit_right(struct page *page, const char *text, unsigned width);
void page_end_line(struct page *page);
/* A line of its own, emphasised. */
void page_title(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A bar of share x width characters, filled with blanks. colour: 0 none, else 1 .. 6. */
void page_bar(struct page *page, double share, unsigned width, unsigned colour);
/* One cell of a column chart: filled between 0 and 1 from below. */
void page_cell(struct page *page, double filled);
void page_colour(struct page *page, unsigned colour); /* 0: back to normal, 7: emphasised, 8: faint */
