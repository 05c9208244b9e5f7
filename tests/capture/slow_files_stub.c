/* Preloaded into a process: files below $SLOW_FOLDER answer each read after $SLOW_MS ms, and the table of mounts is
 * $MOUNTINFO. Stands for storage across a network.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int is_slow(int file) {
  const char *folder = getenv("SLOW_FOLDER");
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (!folder || length < 0) return 0;
  path[length] = 0;
  return !strncmp(path, folder, strlen(folder));
}

static const char *shown(const char *path) {
  const char *table = getenv("MOUNTINFO");
  return table && !strcmp(path, "/proc/self/mountinfo") ? table : path;
}

#define OPEN(name)                                                       \
  int name(const char *path, int flags, ...) {                           \
    static int (*original)(const char *, int, ...);                      \
    if (!original) original = dlsym(RTLD_NEXT, #name);                   \
    va_list rest;                                                        \
    va_start(rest, flags);                                               \
    int mode = flags & O_CREAT ? va_arg(rest, int) : 0;                  \
    va_end(rest);                                                        \
    return original(shown(path), flags, mode);                           \
  }

#define READ(name)                                                       \
  ssize_t name(int file, void *to, size_t size, off_t at) {              \
    static ssize_t (*original)(int, void *, size_t, off_t);              \
    if (!original) original = dlsym(RTLD_NEXT, #name);                   \
    if (is_slow(file)) usleep(1000 * atoi(getenv("SLOW_MS")));           \
    return original(file, to, size, at);                                 \
  }

OPEN(open)
OPEN(open64)
READ(pread)
READ(pread64)
