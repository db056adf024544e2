/* Reads the time stamp counter in several ways, tells a peer each value over UDP, and prints what it found. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(9)};
    struct timespec pause = {.tv_nsec = 20000000};
    unsigned processor = 99, most = 0;
    unsigned long long best = -1, first = __rdtsc(), last = first;
    long long began = now_ns();
    int s = socket(AF_INET, SOCK_DGRAM, 0);

    if (argc != 2 || !inet_aton(argv[1], &peer.sin_addr)) return 2;
    for (int i = 0; i < 50; i++) {
        char said[64];
        unsigned long long then = __rdtsc(), next;
        __asm__ volatile(".byte 0x48, 0x0f, 0x31" : "=a"(next) : : "rdx"); /* RDTSC with a prefix */
        next = __rdtscp(&processor);
        most = processor > most ? processor : most;
        if (then < last || next < then) return 3;
        best = next - then < best ? next - then : best;
        last = next;
        if (sendto(s, said, snprintf(said, sizeof said, "%llu %llu", then, next), 0, (struct sockaddr *)&peer, sizeof peer) < 0)
            return 4;
        nanosleep(&pause, NULL);
    }
    printf("ticks_per_ns %.6f\n", (double)(__rdtsc() - first) / (now_ns() - began));
    printf("shortest_ticks %llu\nprocessor %u\n", best, most);
    for (last = __rdtsc(); __rdtsc() - last < 2000000;) /* a wait that never asks the kernel */
        ;
    puts("waited 1");
    return 0;
}
