/* Nanoseconds per launch and per allocation with its free, through the direct door. Prints two numbers: the best of
 * several rounds each. An argument: that many calls deeper. */
#include <cuda.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS      15
#define LAUNCHES    20000
#define KINDS       500 /* different launches in a row: an iteration, as the watcher sees it */
#define ALLOCATIONS 5000

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void must(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "%s: error %d\n", what, (int)result);
        exit(1);
    }
}

static double launches(CUdeviceptr *memory)
{
    int numbers[3] = {1, 2, 3};
    void *parameters[] = {&memory[0], &memory[1], &memory[2], &numbers[0], &numbers[1], &numbers[2]};
    double begun = now();
    for (int i = 0; i < LAUNCHES; i++)
        must(cuLaunchKernel((CUfunction)parameters, 1 + (unsigned int)(i % KINDS), 1, 1, 256, 1, 1, 0, NULL, parameters,
                            NULL),
             "launch");
    return (now() - begun) / LAUNCHES;
}

static double allocations(void)
{
    double begun = now();
    for (int i = 0; i < ALLOCATIONS; i++) {
        CUdeviceptr address = 0;
        must(cuMemAlloc(&address, 1 << 20), "allocation");
        must(cuMemFree(address), "free");
    }
    return (now() - begun) / ALLOCATIONS;
}

__attribute__((noinline)) static void measure(CUdeviceptr *memory, int depth)
{
    double launch = 1e30, allocation = 1e30;
    if (depth > 0) {
        measure(memory, depth - 1);
        __asm__ volatile(""); /* no tail call */
        return;
    }
    for (int round = 0; round < ROUNDS; round++) {
        double one = launches(memory), other = allocations();
        launch = one < launch ? one : launch;
        allocation = other < allocation ? other : allocation;
    }
    printf("%.1f %.1f\n", launch, allocation);
}

int main(int argc, char **argv)
{
    CUdeviceptr memory[3];
    must(cuInit(0), "start");
    for (int i = 0; i < 3; i++)
        must(cuMemAlloc(&memory[i], 1 << 20), "allocation");
    measure(memory, argc > 1 ? atoi(argv[1]) : 0);
    return 0;
}
