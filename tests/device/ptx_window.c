#include "tests/device/ptx_window.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#define BEFORE      ((size_t)1 << 16) /* offsets below 0 */
#define WINDOW      (((size_t)1 << 32) + ((size_t)1 << 20))
#define FIRST_BYTES ((size_t)1 << 18) /* more than a block of any GPU can have */

struct window {
    uint8_t *start;
    size_t bytes; /* accessible */
    bool is_refused;
};

static _Thread_local struct window window;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void unmap(void *start)
{
    munmap((uint8_t *)start - BEFORE, BEFORE + WINDOW);
}

static void make_key(void)
{
    pthread_key_create(&key, unmap);
}

static void reserve(void)
{
    void *start = mmap(NULL, BEFORE + WINDOW, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    window.is_refused = start == MAP_FAILED;
    if (window.is_refused)
        return;
    window.start = (uint8_t *)start + BEFORE;
    pthread_once(&once, make_key);
    pthread_setspecific(key, window.start);
}

uint8_t *ptx_shared_window(size_t bytes)
{
    if (bytes <= window.bytes && window.start)
        return window.start;
    if (!window.start && !window.is_refused)
        reserve();
    size_t wanted = bytes < FIRST_BYTES ? FIRST_BYTES : (bytes + 4095) & ~(size_t)4095;
    if (window.is_refused || wanted > WINDOW || mprotect(window.start, wanted, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    window.bytes = wanted;
    return window.start;
}
