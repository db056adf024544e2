/* Preloaded: reads and writes that Linux may end early end so, every second time, at a length by draws of VNET_SHORT:
   of streams and pipes, and writes to files.

   A read of a file ends early at the file's end only (bash and Python go by that); files of the kernel's own (/proc,
   /sys, control groups) take what they are written whole or not at all; datagrams, and what is atomic in a pipe, have
   no parts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { PROC = 0x9fa0, SYSFS = 0x62656572, CGROUP = 0x27e0eb, CGROUP2 = 0x63677270 };

static size_t part(int fd, size_t size, int writes)
{
    static __thread unsigned long state;
    struct stat about;
    struct statfs system;
    if (size < 2 || fstat(fd, &about) != 0)
        return size;
    if (S_ISSOCK(about.st_mode)) {
        int type = 0;
        socklen_t length = sizeof type;
        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM)
            return size;
    } else if (S_ISFIFO(about.st_mode)) {
        if (writes && size <= PIPE_BUF)
            return size;
    } else if (!writes || !S_ISREG(about.st_mode) || fstatfs(fd, &system) != 0 || system.f_type == PROC || system.f_type == SYSFS ||
               system.f_type == CGROUP || system.f_type == CGROUP2)
        return size;
    if (state == 0)
        state = strtoul(getenv("VNET_SHORT") ? getenv("VNET_SHORT") : "1", 0, 10) * 2 + 1;
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    unsigned long drawn = state >> 33;
    return drawn & 1 ? size : 1 + (drawn >> 1) % size;
}

#define REAL(name) \
    static typeof(name) *real; \
    if (!real) \
        real = (typeof(name) *)dlsym(RTLD_NEXT, #name)

ssize_t read(int fd, void *to, size_t size)
{
    REAL(read);
    return real(fd, to, part(fd, size, 0));
}

ssize_t write(int fd, const void *from, size_t size)
{
    REAL(write);
    return real(fd, from, part(fd, size, 1));
}

ssize_t recv(int fd, void *to, size_t size, int flags)
{
    REAL(recv);
    return real(fd, to, flags & (MSG_PEEK | MSG_WAITALL) ? size : part(fd, size, 0), flags);
}

ssize_t send(int fd, const void *from, size_t size, int flags)
{
    REAL(send);
    return real(fd, from, part(fd, size, 1), flags);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    REAL(writev);
    return count < 1 ? real(fd, parts, count) : write(fd, parts[0].iov_base, parts[0].iov_len);
}
