/* Asks for io_uring, prints the answer, and does its work without it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
    char room[256] = {0};
    long got = syscall(SYS_io_uring_setup, 8, room);

    printf("io_uring_setup: %s\n", got < 0 ? strerror(errno) : "there");
    return 0;
}
