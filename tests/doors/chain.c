/* The other link of the chain of RTLD_NEXT: see neighbour.c. Preloaded in front of it. */
#include <dlfcn.h>
#include <stddef.h>

int chain_depth(void);

int chain_depth(void)
{
    int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "chain_depth");
    return next ? next() + 1 : 1;
}
