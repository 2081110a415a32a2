#include "trace/page.h"
#include "trace/report.h"
#include <string.h>

#define LINE_MOST 1024

/* 1 for what is no character. */
static size_t character_at(const char *text)
{
    size_t count = report_character_bytes(text);
    return count ? count : 1;
}

/* C0 and C1 control characters, DEL, and bytes that are no UTF-8. */
static bool is_harmless(const struct page *page, const char *text, size_t count)
{
    unsigned char first = (unsigned char)text[0];
    if (count == 1)
        return first >= 0x20 && first < 0x7f;
    return page->terminal.has_unicode && !(first == 0xc2 && (unsigned char)text[1] < 0xa0) && first != 0xe2;
}

static void put_characters(struct page *page, const char *text, unsigned most)
{
    for (unsigned count = 0; *text && count < most && page->column < page->terminal.columns; count++) {
        size_t bytes = character_at(text);
        if (is_harmless(page, text, bytes))
            fwrite(text, 1, bytes, page->out);
        else
            fputc('?', page->out);
        page->column++;
        text += bytes;
    }
}

static unsigned width_of(const char *text)
{
    unsigned width = 0;
    for (; *text; text += character_at(text))
        width++;
    return width;
}

static void put_blanks(struct page *page, unsigned count)
{
    for (; count > 0 && page->column < page->terminal.columns; count--, page->column++)
        fputc(' ', page->out);
}

void page_put(struct page *page, const char *format, ...)
{
    char line[LINE_MOST];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    put_characters(page, line, page->terminal.columns);
}

void page_fit(struct page *page, const char *text, unsigned width)
{
    unsigned needed = width_of(text);
    if (needed <= width) {
        put_characters(page, text, width);
        put_blanks(page, width - needed);
        return;
    }
    put_characters(page, text, width - 2);
    put_characters(page, "..", 2);
}

void page_fit_right(struct page *page, const char *text, unsigned width)
{
    unsigned needed = width_of(text);
    put_blanks(page, needed < width ? width - needed : 0);
    put_characters(page, text, width);
}

void page_end_line(struct page *page)
{
    fputc('\n', page->out);
    page->column = 0;
    page->lines++;
}

/* Bytes of the first characters of `text` that end before a blank and fit into `room`; all of a first word that is
 * longer. */
static size_t bytes_that_fit(const char *text, unsigned room)
{
    size_t at = 0, fitting = 0;
    for (unsigned width = 0; text[at]; width++) {
        if (text[at] == ' ' && width <= room)
            fitting = at;
        if (width > room && fitting)
            return fitting;
        at += character_at(text + at);
    }
    return width_of(text) <= room || !fitting ? at : fitting;
}

void page_wrap(struct page *page, const char *format, ...)
{
    char line[LINE_MOST];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    for (char *rest = line; *rest;) {
        size_t bytes = bytes_that_fit(rest, page->terminal.columns - page->column);
        char *next = rest + bytes + (rest[bytes] == ' ');
        bool is_last = rest[bytes] == '\0';
        rest[bytes] = '\0';
        put_characters(page, rest, page->terminal.columns);
        if (is_last)
            break;
        page_end_line(page);
        put_blanks(page, 2);
        rest = next;
    }
    page_end_line(page);
}

void page_colour(struct page *page, unsigned colour)
{
    static const char *const codes[] = {"0", "33", "36", "32", "35", "34", "31", "1", "2"};
    if (page->terminal.has_colour)
        fprintf(page->out, "\033[%sm", codes[colour]);
}

void page_title(struct page *page, const char *format, ...)
{
    char line[LINE_MOST];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    page_colour(page, 7);
    put_characters(page, line, page->terminal.columns);
    page_colour(page, 0);
    page_end_line(page);
}

/* Eighths of a character. */
static void put_part(struct page *page, unsigned eighths, bool is_column)
{
    static const char *const rows[] = {" ",      "\u258f", "\u258e", "\u258d", "\u258c",
                                       "\u258b", "\u258a", "\u2589", "\u2588"};
    static const char *const columns[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                          "\u2585", "\u2586", "\u2587", "\u2588"};
    if (page->column >= page->terminal.columns)
        return;
    if (page->terminal.has_unicode)
        fputs((is_column ? columns : rows)[eighths], page->out);
    else
        fputc(eighths >= 4 ? '#' : ' ', page->out);
    page->column++;
}

static unsigned eighths_of(double filled)
{
    return filled <= 0 ? 0 : filled >= 1 ? 8 : (unsigned)(filled * 8 + 0.5);
}

void page_bar(struct page *page, double share, unsigned width, unsigned colour)
{
    page_colour(page, colour);
    for (unsigned i = 0; i < width; i++)
        put_part(page, eighths_of(share * width - i), false);
    page_colour(page, 0);
}

void page_cell(struct page *page, double filled)
{
    put_part(page, eighths_of(filled), true);
}
