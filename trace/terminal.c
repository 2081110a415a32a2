#include "trace/terminal.h"
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static unsigned number_in(const char *variable, unsigned otherwise)
{
    const char *text = getenv(variable);
    char *end;
    unsigned long number = text && *text ? strtoul(text, &end, 10) : 0;
    return number > 0 && number <= 1000 && *end == '\0' ? (unsigned)number : otherwise;
}

struct terminal terminal_of(FILE *out)
{
    struct terminal terminal = {.columns = 80, .rows = 50};
    struct winsize size;
    bool is_terminal = isatty(fileno(out)) == 1;
    if (is_terminal && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        terminal.columns = size.ws_col;
        terminal.rows = size.ws_row;
    }
    if (is_terminal) {
        terminal.columns = number_in("COLUMNS", terminal.columns);
        terminal.rows = number_in("LINES", terminal.rows);
    }
    const char *no_colour = getenv("NO_COLOR"), *kind = getenv("TERM");
    terminal.has_colour = is_terminal && !(no_colour && *no_colour) && kind && strcmp(kind, "dumb") != 0;
    setlocale(LC_CTYPE, "");
    terminal.has_unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    return terminal;
}

static bool is_shown;

void progress_show(const char *what, const char *of)
{
    if (isatty(STDERR_FILENO) != 1)
        return;
    fprintf(stderr, "\r\033[Kreprise: %s %s ...", what, of);
    fflush(stderr);
    is_shown = true;
}

void progress_clear(void)
{
    if (is_shown)
        fputs("\r\033[K", stderr);
    is_shown = false;
}
