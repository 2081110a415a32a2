/* A program that is not aware of us. It reaches the driver through the door named on its command line, allocates
 * three times, frees twice, and exits with 0 if the answers are right. */
#include <cuda.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef CUresult (*allocate_function)(CUdeviceptr *, size_t);
typedef CUresult (*free_function)(CUdeviceptr);
typedef CUresult (*set_current_function)(CUcontext);

struct functions {
    allocate_function allocate;
    free_function release;
    set_current_function set_current;
};

static void fail(const char *what)
{
    const char *why = dlerror();
    fprintf(stderr, "%s: %s\n", what, why ? why : "wrong answer");
    exit(1);
}

#define EXPECT(condition) ((condition) ? (void)0 : fail(#condition))

static struct functions from_handle(void *handle, const char *version)
{
    struct functions functions;
#define LOOK_UP(name) (version ? dlvsym(handle, name, version) : dlsym(handle, name))
    functions.allocate = (allocate_function)LOOK_UP("cuMemAlloc_v2");
    functions.release = (free_function)LOOK_UP("cuMemFree_v2");
    functions.set_current = (set_current_function)LOOK_UP("cuCtxSetCurrent");
#undef LOOK_UP
    EXPECT(functions.allocate && functions.release && functions.set_current);
    return functions;
}

static void *open_driver(const char *name, int flags)
{
    void *handle = dlopen(name, flags);
    EXPECT(handle);
    return handle;
}

static struct functions from_get_proc(int is_second, int with_status, cuuint64_t flags)
{
    struct functions functions = {0};
    void *handle = open_driver("libcuda.so.1", RTLD_NOW);
    CUdriverProcAddressQueryResult status;
    void **slots[] = {(void **)&functions.allocate, (void **)&functions.release, (void **)&functions.set_current};
    static const char *const names[] = {"cuMemAlloc", "cuMemFree", "cuCtxSetCurrent"};
    __typeof__(cuGetProcAddress) *first = (__typeof__(first))dlsym(handle, "cuGetProcAddress");
    __typeof__(cuGetProcAddress_v2) *second = (__typeof__(second))dlsym(handle, "cuGetProcAddress_v2");
    EXPECT(first && second);
    for (int i = 0; i < 3; i++)
        EXPECT((is_second ? second(names[i], slots[i], 12000, flags, with_status ? &status : NULL)
                          : first(names[i], slots[i], 12000, flags)) == CUDA_SUCCESS);
    return functions;
}

static void use(struct functions functions)
{
    CUdeviceptr address[3] = {0};
    EXPECT(functions.set_current((CUcontext)&functions) == CUDA_SUCCESS);
    for (int i = 0; i < 3; i++)
        EXPECT(functions.allocate(&address[i], 4096) == CUDA_SUCCESS && address[i]);
    errno = 77;
    EXPECT(functions.release(address[0]) == CUDA_SUCCESS);
    EXPECT(functions.release(address[1]) == CUDA_SUCCESS);
    EXPECT(errno == 77);
}

/* Versions and flags are the driver's business: what comes out must be of the form that was asked for. */
static void check_versions(void)
{
    void *handle = open_driver("libcuda.so.1", RTLD_NOW);
    __typeof__(cuGetProcAddress_v2) *get = (__typeof__(get))dlsym(handle, "cuGetProcAddress_v2");
    CUresult (*old)(unsigned int *, unsigned int) = NULL;
    CUresult (*synchronize)(CUstream) = NULL;
    CUresult (*synchronize_thread)(CUstream) = NULL;
    int (*wrong_calls)(void) = (int (*)(void))dlsym(handle, "fake_wrong_calls");
    void *nothing = handle;
    unsigned int address32 = 0;
    EXPECT(get("cuMemAlloc", (void **)&old, 2000, 0, NULL) == CUDA_SUCCESS);
    EXPECT(old(&address32, 16) == CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(get("cuStreamSynchronize", (void **)&synchronize, 12000, 0, NULL) == CUDA_SUCCESS);
    EXPECT(get("cuStreamSynchronize", (void **)&synchronize_thread, 12000, 2, NULL) == CUDA_SUCCESS);
    EXPECT(synchronize != synchronize_thread);
    EXPECT(synchronize(NULL) == CUDA_SUCCESS && synchronize_thread(NULL) == CUDA_SUCCESS);
    EXPECT(wrong_calls && wrong_calls() == 0);
    EXPECT(get("", &nothing, 0, 0, NULL) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(get("cuNoSuchFunction", &nothing, 13000, 0, NULL) == CUDA_ERROR_NOT_FOUND && nothing == NULL);
    EXPECT(get("cuGetProcAddress", (void **)&get, 12000, 0, NULL) == CUDA_SUCCESS);
    use(from_get_proc(1, 1, 0));
}

/* Everything that is not in the table must be what the linker says. */
static void check_other_names(void)
{
    void *math = open_driver("libm.so.6", RTLD_NOW);
    void *neighbour = open_driver("libneighbour.so", RTLD_NOW);
    int (*create)(void) = (int (*)(void))dlsym(neighbour, "cudnnCreate");
    int (*chain)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "chain_depth");
    double (*cosine)(double) = (double (*)(double))dlsym(math, "cos");
    EXPECT(create && create() == 9);
    EXPECT(dlsym(neighbour, "cuMemAllocator") == NULL && dlerror() != NULL);
    EXPECT(dlsym(math, "cuMemAlloc_v2") == NULL && dlerror() != NULL);
    int (*own)(void) = (int (*)(void))dlsym(neighbour, "cuMemFree_v2");
    EXPECT(own && own() == 10);
    EXPECT(chain && chain() == 2); /* two libraries, the first calls the second by RTLD_NEXT */
    EXPECT(cosine && cosine(0) > 0.5);
    EXPECT(dlsym(RTLD_DEFAULT, "printf") == (void *)printf);
    EXPECT(dlvsym(math, "cos", "GLIBC_2.2.5") != NULL || dlvsym(math, "cos", "GLIBC_2.17") != NULL);
    EXPECT(dlsym(RTLD_DEFAULT, "no_such_name") == NULL && strstr(dlerror(), "no_such_name"));
    use(from_handle(open_driver("libcuda.so.1", RTLD_NOW), NULL));
}

/* Nothing has loaded libcuda: our exported names are no reason to believe in it. */
static void check_no_driver(void)
{
    EXPECT(dlopen("libcuda.so.1", RTLD_NOW) == NULL);
    dlerror();
    EXPECT(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") == NULL);
    EXPECT(dlerror() != NULL);
}

static void check_fork(void)
{
    struct functions functions = from_handle(open_driver("libcuda.so.1", RTLD_NOW), NULL);
    use(functions);
    pid_t child = fork();
    if (child == 0) {
        use(functions); /* neither hangs nor counts */
        exit(0);
    }
    int status = 1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

static void *without_context(void *data)
{
    const struct functions *functions = data;
    CUdeviceptr address = 0;
    return functions->allocate(&address, 64) == CUDA_ERROR_INVALID_CONTEXT ? data : NULL;
}

static void check_thread(void)
{
    struct functions functions = from_handle(open_driver("libcuda.so.1", RTLD_NOW), NULL);
    pthread_t thread;
    void *answer = NULL;
    use(functions);
    EXPECT(pthread_create(&thread, NULL, without_context, &functions) == 0);
    EXPECT(pthread_join(thread, &answer) == 0 && answer == &functions);
}

static void *use_all(void *data)
{
    use(*(const struct functions *)data);
    return NULL;
}

/* Many first calls at once: one loads, the others wait. */
static void check_race(void)
{
    struct functions functions = from_handle(open_driver("libcuda.so.1", RTLD_NOW), NULL);
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        EXPECT(pthread_create(&threads[i], NULL, use_all, &functions) == 0);
    for (int i = 0; i < 16; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0);
}

/* Both argument forms, capture, copies, managed memory: each must reach the engine. */
static void check_calls(void)
{
    void *handle = open_driver("libcuda.so.1", RTLD_NOW);
    struct functions functions = from_handle(handle, NULL);
    __typeof__(cuLaunchKernel) *launch = (__typeof__(launch))dlsym(handle, "cuLaunchKernel");
    __typeof__(cuMemcpyHtoD_v2) *to_device = (__typeof__(to_device))dlsym(handle, "cuMemcpyHtoD_v2");
    __typeof__(cuMemcpyDtoH_v2) *to_host = (__typeof__(to_host))dlsym(handle, "cuMemcpyDtoH_v2");
    __typeof__(cuStreamBeginCapture_v2) *begin = (__typeof__(begin))dlsym(handle, "cuStreamBeginCapture_v2");
    __typeof__(cuStreamEndCapture) *end = (__typeof__(end))dlsym(handle, "cuStreamEndCapture");
    __typeof__(cuMemAllocManaged) *managed = (__typeof__(managed))dlsym(handle, "cuMemAllocManaged");
    CUfunction kernel = (CUfunction)&functions;
    CUdeviceptr memory = 0, unified = 0;
    CUgraph graph;
    int value = 41, seen = 0;
    use(functions);
    EXPECT(functions.allocate(&memory, 64) == CUDA_SUCCESS);
    void *parameters[] = {&memory, &value};
    EXPECT(launch(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL) == CUDA_SUCCESS);
    EXPECT(to_host(&seen, memory, sizeof seen) == CUDA_SUCCESS && seen == 41);
    struct {
        CUdeviceptr memory;
        int value;
    } block = {memory, 42};
    size_t bytes = 12;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    EXPECT(launch(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra) == CUDA_SUCCESS);
    EXPECT(to_host(&seen, memory, sizeof seen) == CUDA_SUCCESS && seen == 42);
    EXPECT(to_device(memory, &value, sizeof value) == CUDA_SUCCESS);
    EXPECT(begin(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    EXPECT(launch(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL) == CUDA_SUCCESS);
    EXPECT(end(NULL, &graph) == CUDA_SUCCESS);
    EXPECT(launch(kernel, 0, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(managed(&unified, 1 << 20, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    EXPECT(functions.release(unified) == CUDA_SUCCESS);
    EXPECT(managed(&unified, 1u << 31, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_OUT_OF_MEMORY);
}

/* Under a cap of 1 MiB on a device of 1 GiB. */
static void check_information(void)
{
    void *handle = open_driver("libcuda.so.1", RTLD_NOW);
    __typeof__(cuMemGetInfo_v2) *info = (__typeof__(info))dlsym(handle, "cuMemGetInfo_v2");
    __typeof__(cuDeviceTotalMem_v2) *total = (__typeof__(total))dlsym(handle, "cuDeviceTotalMem_v2");
    size_t bytes = 0, free_bytes = 0;
    use(from_handle(handle, NULL));
    EXPECT(info(&free_bytes, &bytes) == CUDA_SUCCESS && bytes == 1 << 20 && free_bytes == 1 << 19);
    EXPECT(info(NULL, NULL) == CUDA_SUCCESS);
    EXPECT(total(&bytes, 0) == CUDA_SUCCESS && bytes == 1 << 20);
}

int main(int count, char **arguments)
{
    const char *door = count > 1 ? arguments[1] : "";
    const char *path = count > 2 ? arguments[2] : "libcuda.so.1";
#define DOOR(name) (strcmp(door, name) == 0)
    if (DOOR("dlsym"))
        use(from_handle(open_driver(path, RTLD_NOW | RTLD_LOCAL), NULL));
    else if (DOOR("dlvsym"))
        use(from_handle(open_driver("libcuda.so.1", RTLD_NOW), "libcuda.so.1"));
    else if (DOOR("default"))
        use((open_driver("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL), from_handle(RTLD_DEFAULT, NULL)));
    else if (DOOR("get_proc"))
        use(from_get_proc(0, 0, 0));
    else if (DOOR("get_proc_v2"))
        use(from_get_proc(1, 1, 0));
    else if (DOOR("get_proc_null_status"))
        use(from_get_proc(1, 0, 0));
    else if (DOOR("get_proc_per_thread"))
        use(from_get_proc(1, 0, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
    else if (DOOR("versions"))
        check_versions();
    else if (DOOR("other_names"))
        check_other_names();
    else if (DOOR("no_driver"))
        check_no_driver();
    else if (DOOR("fork"))
        check_fork();
    else if (DOOR("thread"))
        check_thread();
    else if (DOOR("race"))
        check_race();
    else if (DOOR("calls"))
        check_calls();
    else if (DOOR("information"))
        check_information();
    else
        fail("no such door");
    return 0;
}
