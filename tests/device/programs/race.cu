// Shows what the adversarial order is for. `race wait`: a second stream reads what a first one writes, behind an event.
// `race nowait`: without it. `race blocks`: every block takes a number. Prints what was seen.
#include <cuda_runtime.h>
#include <cstdio>
#include <cstring>

__global__ void write_word(int *to, int value)
{
    *to = value;
}

__global__ void take_numbers(int *next, int *taken)
{
    taken[blockIdx.x] = atomicAdd(next, 1);
}

static int read_behind(bool is_waiting)
{
    const int rounds = 200;
    cudaStream_t writer, reader;
    cudaEvent_t is_written, is_read;
    int *word, *seen, stale = 0;
    cudaStreamCreateWithFlags(&writer, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&reader, cudaStreamNonBlocking);
    cudaEventCreate(&is_written);
    cudaEventCreate(&is_read);
    cudaMalloc(&word, sizeof(int));
    cudaMallocHost(&seen, rounds * sizeof(int));
    cudaMemset(word, 0xff, sizeof(int));
    cudaDeviceSynchronize();
    for (int round = 0; round < rounds; round++) {
        write_word<<<1, 1, 0, writer>>>(word, round);
        cudaEventRecord(is_written, writer);
        if (is_waiting)
            cudaStreamWaitEvent(reader, is_written, 0);
        cudaMemcpyAsync(&seen[round], word, sizeof(int), cudaMemcpyDeviceToHost, reader);
        cudaEventRecord(is_read, reader);
        cudaStreamWaitEvent(writer, is_read, 0);
    }
    if (cudaDeviceSynchronize() != cudaSuccess)
        return -1;
    for (int round = 0; round < rounds; round++)
        stale += seen[round] != round;
    return stale;
}

static unsigned order_of_blocks()
{
    const int blocks = 64;
    int *next, *taken, got[blocks];
    unsigned hash = 2166136261u;
    cudaMalloc(&next, sizeof(int));
    cudaMalloc(&taken, sizeof got);
    cudaMemset(next, 0, sizeof(int));
    take_numbers<<<blocks, 1>>>(next, taken);
    if (cudaMemcpy(got, taken, sizeof got, cudaMemcpyDeviceToHost) != cudaSuccess)
        return 0;
    for (int block = 0; block < blocks; block++)
        hash = (hash ^ (unsigned)got[block]) * 16777619u;
    return hash;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "blocks") == 0)
        printf("%08x\n", order_of_blocks());
    else
        printf("%d\n", read_behind(strcmp(what, "wait") == 0));
    return 0;
}
