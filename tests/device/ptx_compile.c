#include "tests/device/ptx_compile.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *const flags[] = {"-x",
                                    "c",
                                    "-std=gnu17",
                                    "-ftree-vectorize",
                                    "-fvect-cost-model=dynamic",
                                    "-march=native",
                                    "-ffp-contract=off",
                                    "-fno-math-errno",
                                    "-fno-trapping-math",
                                    "-fno-strict-aliasing",
                                    "-fwrapv",
                                    "-fno-semantic-interposition",
                                    "-fvisibility=default",
                                    "-w",
                                    "-fPIC",
                                    "-Wl,-z,defs",
                                    "-shared",
                                    NULL};

/* Beyond some size the compiler's time grows faster than what it gains. */
static const char *optimisation(size_t bytes)
{
    return bytes > 400000 ? "-O1" : "-O2";
}

/* ---- the cache directory ---- */

static bool make_directories(char *path)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        if (mkdir(path, 0700) != 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
            return false;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static bool cache_directory(char *path, size_t path_bytes, char *why, size_t why_bytes)
{
    const char *own = getenv("CPUDEV_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (own && *own)
        snprintf(path, path_bytes, "%s", own);
    else if (xdg && *xdg)
        snprintf(path, path_bytes, "%s/reprise-cpudev", xdg);
    else if (home && *home)
        snprintf(path, path_bytes, "%s/.cache/reprise-cpudev", home);
    else
        snprintf(path, path_bytes, "/tmp/reprise-cpudev-%u", (unsigned)getuid());
    struct stat st;
    if (!make_directories(path) || stat(path, &st) != 0) {
        snprintf(why, why_bytes, "cannot make the kernel cache %s: %s", path, strerror(errno));
        return false;
    }
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH))) {
        snprintf(why, why_bytes, "the kernel cache %s is no directory that only this user can write to", path);
        return false;
    }
    return true;
}

/* ---- the compiler, and what a compiled file depends on ---- */

static bool find_compiler(char *path, size_t path_bytes)
{
    const char *name = getenv("CPUDEV_CC");
    if (!name || !*name)
        name = "cc";
    if (strchr(name, '/'))
        return (size_t)snprintf(path, path_bytes, "%s", name) < path_bytes && access(path, X_OK) == 0;
    const char *list = getenv("PATH");
    if (!list)
        list = "/usr/local/bin:/usr/bin:/bin";
    while (*list) {
        size_t length = strcspn(list, ":");
        if ((size_t)snprintf(path, path_bytes, "%.*s/%s", (int)length, list, name) < path_bytes &&
            access(path, X_OK) == 0)
            return true;
        list += length + (list[length] == ':');
    }
    return false;
}

struct hash {
    uint64_t a, b;
};

static void hash_add(struct hash *hash, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++) {
        hash->a = (hash->a ^ p[i]) * 0x100000001b3u;
        hash->b = (hash->b + p[i]) * 0x9e3779b97f4a7c15u;
        hash->b ^= hash->b >> 29;
    }
}

/* The first processor's entry: -march=native means another thing on another machine. */
static void hash_processor(struct hash *hash)
{
    char text[4096];
    int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = 0;
    static const char *const keys[] = {"model name", "flags", "Features", "CPU part"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *line = strstr(text, keys[i]);
        if (line)
            hash_add(hash, line, strcspn(line, "\n"));
    }
}

static void hash_inputs(struct hash *hash, const char *text, size_t bytes, const char *compiler)
{
    struct stat st;
    hash_add(hash, ptx_head, (size_t)(ptx_head_end - ptx_head));
    hash_add(hash, text, bytes);
    hash_add(hash, optimisation(bytes), strlen(optimisation(bytes)));
    for (size_t i = 0; flags[i]; i++)
        hash_add(hash, flags[i], strlen(flags[i]) + 1);
    hash_add(hash, compiler, strlen(compiler));
    if (stat(compiler, &st) == 0) {
        hash_add(hash, &st.st_ino, sizeof st.st_ino);
        hash_add(hash, &st.st_size, sizeof st.st_size);
        hash_add(hash, &st.st_mtim, sizeof st.st_mtim);
    }
    hash_processor(hash);
}

/* ---- running it ---- */

static bool write_source(const char *path, const char *text, size_t bytes)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    fwrite(ptx_head, 1, (size_t)(ptx_head_end - ptx_head), file);
    fwrite(text, 1, bytes, file);
    bool fine = !ferror(file);
    return fclose(file) == 0 && fine;
}

/* The environment without what would load other libraries into the compiler. */
static char **compiler_environment(void)
{
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **copy = malloc((count + 1) * sizeof *copy);
    for (size_t i = 0; copy && i < count; i++)
        if (strncmp(environ[i], "LD_", 3) != 0)
            copy[kept++] = environ[i];
    if (copy)
        copy[kept] = NULL;
    return copy;
}

static bool run_compiler(const char *compiler, const char *level, const char *source, const char *object,
                         const char *log)
{
    const char *arguments[40] = {compiler, level};
    size_t count = 2;
    for (size_t i = 0; flags[i]; i++)
        arguments[count++] = flags[i];
    arguments[count++] = source;
    arguments[count++] = "-o";
    arguments[count++] = object;
    arguments[count++] = "-lm";
    char **environment = compiler_environment();
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    pid_t child;
    int failed = posix_spawn(&child, compiler, &actions, &attributes, (char *const *)arguments,
                             environment ? environment : environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    free(environment);
    if (failed)
        return false;
    int status = 0;
    pid_t waited;
    while ((waited = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        ;
    /* A program that ignores SIGCHLD has no children to wait for: then the file tells. */
    return waited < 0 ? access(object, R_OK) == 0 : WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void first_error(const char *log, char *line, size_t line_bytes)
{
    FILE *file = fopen(log, "re");
    *line = 0;
    while (file && fgets(line, (int)line_bytes, file) && !strstr(line, "error"))
        ;
    if (file)
        fclose(file);
    line[strcspn(line, "\n")] = 0;
}

/* Leaves the finished object at `path`. On failure the source stays, for whoever looks into it. */
static bool build(const char *directory, const char *path, const char *compiler, const char *text, size_t bytes,
                  char *why, size_t why_bytes)
{
    static atomic_uint serial;
    char stem[PATH_MAX], source[PATH_MAX], object[PATH_MAX], log[PATH_MAX], error[300];
    unsigned number = atomic_fetch_add(&serial, 1);
    bool fits =
        (size_t)snprintf(stem, sizeof stem, "%s/making.%ld.%u", directory, (long)getpid(), number) < sizeof stem - 8;
    snprintf(source, sizeof source, "%.4000s.c", stem);
    snprintf(object, sizeof object, "%.4000s.so", stem);
    snprintf(log, sizeof log, "%.4000s.log", stem);
    if (!fits || !write_source(source, text, bytes)) {
        snprintf(why, why_bytes, "cannot write to the kernel cache %s: %s", directory, strerror(errno));
        return false;
    }
    bool fine = run_compiler(compiler, optimisation(bytes), source, object, log) && rename(object, path) == 0;
    if (fine) {
        unlink(source);
    } else {
        first_error(log, error, sizeof error);
        snprintf(why, why_bytes, "%s failed on %s: %s", compiler, source, error);
        unlink(object);
    }
    unlink(log);
    return fine;
}

void *ptx_compile(const char *text, size_t bytes, bool *was_compiled, char *why, size_t why_bytes)
{
    char directory[PATH_MAX - 100], compiler[PATH_MAX], path[PATH_MAX];
    *was_compiled = false;
    if (!cache_directory(directory, sizeof directory, why, why_bytes))
        return NULL;
    bool has_compiler = find_compiler(compiler, sizeof compiler);
    struct hash hash = {0xcbf29ce484222325u, 0x2545f4914f6cdd1du};
    hash_inputs(&hash, text, bytes, has_compiler ? compiler : "");
    snprintf(path, sizeof path, "%s/%016llx%016llx.so", directory, (unsigned long long)hash.a,
             (unsigned long long)hash.b);
    void *handle = access(path, R_OK) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (handle)
        return handle;
    if (!has_compiler) {
        snprintf(why, why_bytes, "no C compiler: neither CPUDEV_CC nor cc in PATH");
        return NULL;
    }
    *was_compiled = true;
    if (!build(directory, path, compiler, text, bytes, why, why_bytes))
        return NULL;
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        snprintf(why, why_bytes, "cannot load %s: %s", path, dlerror());
    return handle;
}
