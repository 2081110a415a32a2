/* Last include of every file whose code runs inside a driver call of somebody else's program: what would
 * re-enter the program's allocator, its stdio or the dynamic linker does not compile. */
#pragma once
#pragma GCC poison malloc calloc realloc free strdup asprintf
#pragma GCC poison printf fprintf sprintf snprintf vsnprintf vfprintf puts fputs fopen fclose perror
#pragma GCC poison getenv setenv putenv dlopen dlclose dlsym dlvsym
