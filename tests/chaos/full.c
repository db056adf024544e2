/* Preloaded: the n-th call that takes room on a disk fails with ENOSPC, in whatever process of a command it is made.

   VNET_FULL_TOP: the directory that the disk holds, with a resolved path. VNET_FULL_SHARED: a file of the size of `struct shared`, in
   which all processes count, and which holds n and the paths of the calls. Calls that need no new room (rename, unlink, fsync of what
   was written) are left as they are, and so are calls that libc makes by itself (stdio). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) \
    static typeof(name) *real; \
    if (!real) \
        real = (typeof(name) *)dlsym(RTLD_NEXT, #name)

enum { CALLS = 4096, LENGTH = 512 };

struct shared {
    _Atomic uint64_t count;
    uint64_t fails_at; /* 0: none */
    uint64_t stays;    /* not 0: full from that call on */
    uint64_t unused;
    char paths[CALLS][LENGTH]; /* of call n at n - 1 */
};

static const char *top;
static struct shared *shared;

__attribute__((constructor)) static void begin(void)
{
    const char *file = getenv("VNET_FULL_SHARED");
    if (!file || !getenv("VNET_FULL_TOP"))
        return;
    int fd = open(file, O_RDWR | O_CLOEXEC);
    void *mapped = fd < 0 ? MAP_FAILED : mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (mapped == MAP_FAILED)
        abort(); /* a test that counts nothing passes for no reason */
    top = getenv("VNET_FULL_TOP");
    shared = mapped;
}

static int below(const char *path)
{
    size_t length = strlen(top);
    return strncmp(path, top, length) == 0 && (path[length] == '/' || path[length] == 0);
}

/* The path of a descriptor, or "" where it is no regular file or directory. */
static void path_of(int fd, char *to)
{
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, to, PATH_MAX - 1);
    to[size < 0 ? 0 : size] = 0;
}

static int is_full(const char *path)
{
    int before = errno;
    uint64_t now = atomic_fetch_add(&shared->count, 1) + 1, at = shared->fails_at;
    if (now <= CALLS)
        snprintf(shared->paths[now - 1], LENGTH, "%s", path);
    errno = at && (shared->stays ? now >= at : now == at) ? ENOSPC : before;
    return at && (shared->stays ? now >= at : now == at);
}

static int full_by_descriptor(int fd)
{
    char path[PATH_MAX];
    if (!shared)
        return 0;
    path_of(fd, path);
    return below(path) && is_full(path);
}

/* A new name: its directory takes room. */
static int full_by_name(int directory, const char *name)
{
    char path[PATH_MAX + LENGTH], resolved[PATH_MAX + LENGTH];
    struct stat about;
    if (!shared || fstatat(directory, name, &about, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    *path = 0;
    if (name[0] != '/' && directory == AT_FDCWD)
        strcpy(path, ".");
    else if (name[0] != '/')
        path_of(directory, path);
    if (strlen(path) + strlen(name) + 2 > PATH_MAX)
        return 0;
    if (name[0] != '/')
        strcat(path, "/");
    strcat(path, name);
    char *last = strrchr(path, '/');
    *last = 0;
    if (!realpath(*path ? path : "/", resolved) || !below(resolved))
        return 0;
    strcat(strcat(resolved, "/"), last + 1);
    return is_full(resolved);
}

#define MODE \
    mode_t mode = 0; \
    if (flags & (O_CREAT | __O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }

int open(const char *path, int flags, ...)
{
    REAL(open);
    MODE
    return (flags & O_CREAT) && full_by_name(AT_FDCWD, path) ? -1 : real(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    REAL(open64);
    MODE
    return (flags & O_CREAT) && full_by_name(AT_FDCWD, path) ? -1 : real(path, flags, mode);
}

int openat(int at, const char *path, int flags, ...)
{
    REAL(openat);
    MODE
    return (flags & O_CREAT) && full_by_name(at, path) ? -1 : real(at, path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...)
{
    REAL(openat64);
    MODE
    return (flags & O_CREAT) && full_by_name(at, path) ? -1 : real(at, path, flags, mode);
}

int mkdir(const char *path, mode_t mode)
{
    REAL(mkdir);
    return full_by_name(AT_FDCWD, path) ? -1 : real(path, mode);
}

int mkdirat(int at, const char *path, mode_t mode)
{
    REAL(mkdirat);
    return full_by_name(at, path) ? -1 : real(at, path, mode);
}

ssize_t write(int fd, const void *from, size_t size)
{
    REAL(write);
    return full_by_descriptor(fd) ? -1 : real(fd, from, size);
}

ssize_t pwrite(int fd, const void *from, size_t size, off_t at)
{
    REAL(pwrite);
    return full_by_descriptor(fd) ? -1 : real(fd, from, size, at);
}

ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at)
{
    REAL(pwrite64);
    return full_by_descriptor(fd) ? -1 : real(fd, from, size, at);
}

ssize_t writev(int fd, const struct iovec *parts, int number)
{
    REAL(writev);
    return full_by_descriptor(fd) ? -1 : real(fd, parts, number);
}

int ftruncate(int fd, off_t size)
{
    REAL(ftruncate);
    return size && full_by_descriptor(fd) ? -1 : real(fd, size);
}

int ftruncate64(int fd, off64_t size)
{
    REAL(ftruncate64);
    return size && full_by_descriptor(fd) ? -1 : real(fd, size);
}

int posix_fallocate(int fd, off_t at, off_t size)
{
    REAL(posix_fallocate);
    return full_by_descriptor(fd) ? ENOSPC : real(fd, at, size);
}

ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *place, size_t size, unsigned flags)
{
    REAL(copy_file_range);
    return full_by_descriptor(to) ? -1 : real(from, at, to, place, size, flags);
}

ssize_t sendfile(int to, int from, off_t *at, size_t size)
{
    REAL(sendfile);
    return full_by_descriptor(to) ? -1 : real(to, from, at, size);
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t size)
{
    REAL(sendfile64);
    return full_by_descriptor(to) ? -1 : real(to, from, at, size);
}
