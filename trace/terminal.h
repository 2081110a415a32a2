/* What the reader of the text sits in front of, and telling him that work goes on. */
#pragma once
#include <stdbool.h>
#include <stdio.h>

struct terminal {
    unsigned columns, rows;
    bool has_colour;  /* a terminal, and NO_COLOR is not set */
    bool has_unicode; /* the locale's characters are UTF-8 */
};

/* A file or a pipe counts as 80 x 50. COLUMNS and LINES override the size of a terminal. */
struct terminal terminal_of(FILE *out);

/* One line on stderr that the next call replaces, if stderr is a terminal; nothing otherwise. */
void progress_show(const char *what, const char *of);
void progress_clear(void);
