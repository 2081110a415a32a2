/* A library with names that look like the driver's and are not, and one link of a chain of RTLD_NEXT. */
#include <dlfcn.h>
#include <stddef.h>

int cudnnCreate(void);
int cuMemFree_v2(void);
int chain_depth(void);

int cudnnCreate(void)
{
    return 9;
}

int cuMemFree_v2(void)
{
    return 10;
}

int chain_depth(void)
{
    int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "chain_depth");
    return next ? next() + 1 : 1;
}
