/* Several PTX texts as one: the version and target lines of the first, the rest one behind the other. What was
 * declared in one and defined in another is one program to the parser. */
#pragma once
#include <stddef.h>

struct link_text {
    char *text; /* NULL as long as nothing was added; ends in a zero byte */
    size_t bytes;
};

void link_text_add(struct link_text *whole, const char *text, size_t bytes);
void link_text_free(struct link_text *whole);
