#include "tests/device/link_text.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The line belongs to the head of a PTX file, of which the whole needs only one. */
static bool is_head(const char *line, size_t length)
{
    static const char *const words[] = {".version", ".target", ".address_size"};
    while (length > 0 && (*line == ' ' || *line == '\t')) {
        line++;
        length--;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (length >= strlen(words[i]) && memcmp(line, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

void link_text_add(struct link_text *whole, const char *text, size_t bytes)
{
    char *more = realloc(whole->text, whole->bytes + bytes + 2);
    if (more == NULL)
        abort();
    bool is_first = whole->bytes == 0;
    whole->text = more;
    for (const char *line = text, *end = text + bytes; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t length = newline != NULL ? (size_t)(newline - line) + 1 : (size_t)(end - line);
        if (is_first || !is_head(line, length)) {
            memcpy(whole->text + whole->bytes, line, length);
            whole->bytes += length;
        }
        line += length;
    }
    whole->text[whole->bytes++] = '\n';
    whole->text[whole->bytes] = '\0';
}

void link_text_free(struct link_text *whole)
{
    free(whole->text);
    *whole = (struct link_text){0};
}
