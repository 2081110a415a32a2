#include "shim/recorder_file.h"

#include "shim/config.h"
#include "shim/say.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/inside.h"

enum taken { TAKEN_BY_US, TAKEN_BY_OTHERS, TAKEN_BY_NOBODY }; /* the last: it cannot be, errno says why */

static bool append(char out[RECORDER_PATH_MOST], size_t *used, const char *text)
{
    size_t length = strlen(text);
    if (*used + length >= RECORDER_PATH_MOST)
        return false;
    memcpy(out + *used, text, length + 1);
    *used += length;
    return true;
}

static bool append_number(char out[RECORDER_PATH_MOST], size_t *used, const char *before, uint32_t number)
{
    char text[32];
    say_format(text, sizeof text, "%s%u", before, number);
    return append(out, used, text);
}

bool recorder_file_name(const char *pattern, uint32_t rank, uint32_t process, char out[RECORDER_PATH_MOST],
                        bool *is_whole)
{
    size_t used = 0;
    *is_whole = false;
    out[0] = '\0';
    for (; *pattern != '\0'; pattern++) {
        bool is_good;
        if (*pattern != '%') {
            is_good = append(out, &used, (char[]){*pattern, '\0'});
        } else if (*++pattern == '%') {
            is_good = append(out, &used, "%");
        } else {
            is_good = (*pattern == 'p' || *pattern == 'r') && append_number(out, &used, "",
                                                                            *pattern == 'p'      ? process
                                                                            : rank == TRACE_NONE ? 0
                                                                                                 : rank);
            *is_whole = true;
        }
        if (!is_good)
            return false;
    }
    return *is_whole || rank == TRACE_NONE || append_number(out, &used, ".rank", rank);
}

static bool lock(int descriptor)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(descriptor, F_SETLK, &whole) == 0;
}

/* An open descriptor in *out if it is ours. */
static enum taken take(const char *path, bool must_be_new, int *out)
{
    struct stat about;
    int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | (must_be_new ? O_EXCL : 0), 0644);
    if (descriptor < 0 && must_be_new && errno == EEXIST && stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        errno = S_ISDIR(about.st_mode) ? EISDIR : EINVAL;
    if (descriptor < 0)
        return errno == EEXIST ? TAKEN_BY_OTHERS : TAKEN_BY_NOBODY;
    int error = 0;
    if (fstat(descriptor, &about) != 0)
        error = errno;
    else if (!S_ISREG(about.st_mode))
        error = EINVAL;
    else if (!lock(descriptor))
        error = errno == EAGAIN || errno == EACCES ? -1 : errno;
    else if (ftruncate(descriptor, 0) != 0)
        error = errno;
    if (error == 0) {
        *out = descriptor;
        return TAKEN_BY_US;
    }
    close(descriptor);
    errno = error;
    return error == -1 ? TAKEN_BY_OTHERS : TAKEN_BY_NOBODY;
}

struct trace_writer *recorder_file_open(void)
{
    char path[RECORDER_PATH_MOST];
    bool is_whole;
    int descriptor = -1;
    uint32_t process = (uint32_t)getpid();
    if (!recorder_file_name(config()->trace_path, config()->rank, process, path, &is_whole)) {
        say(SAY_WARNING, "no trace: %s is no name for a file (%%p, %%r and %%%% are known)", config()->trace_path);
        return NULL;
    }
    enum taken taken = take(path, config()->is_trace_new && !is_whole, &descriptor);
    size_t used = strlen(path);
    if (taken == TAKEN_BY_OTHERS && append_number(path, &used, ".", process))
        taken = take(path, false, &descriptor);
    struct trace_writer *writer = taken == TAKEN_BY_US ? trace_writer_start(descriptor) : NULL;
    if (writer == NULL) {
        if (taken == TAKEN_BY_US)
            close(descriptor);
        say(SAY_WARNING, "no trace: %s cannot be written (error %d)", path, errno);
    } else {
        say(SAY_INFO, "tracing into %s", path);
    }
    return writer;
}
