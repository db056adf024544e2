/* Reads each clock by the vDSO and by a system call in turns, waits by clocks without sleeping, and prints what it found. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TURNS 2000
static const clockid_t CLOCKS[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME};
static const clockid_t COARSE[] = {CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE};

static long long ns(const struct timespec *t) { return t->tv_sec * 1000000000LL + t->tv_nsec; }

static long long by_page(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return ns(&t);
}

static long long by_call(clockid_t clock) {
    struct timespec t;
    syscall(SYS_clock_gettime, clock, &t);
    return ns(&t);
}

/* The least and the most by which a reading is later than the one before. */
static void steps(const char *name, clockid_t clock) {
    long long last = by_call(clock), least = 1LL << 60, most = 0;

    for (int i = 0; i < TURNS; i++) {
        long long now = i % 3 ? by_page(clock) : by_call(clock);

        least = now - last < least ? now - last : least;
        most = now - last > most ? now - last : most;
        last = now;
    }
    printf("%s_least %lld\n%s_most %lld\n", name, least, name, most);
}

/* Two threads read one clock in turns, and none sees it go back. */
static long long newest;
static int went_back;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *reader(void *unused) {
    for (int i = 0; i < TURNS; i++) {
        pthread_mutex_lock(&lock);
        long long now = by_page(CLOCK_MONOTONIC);
        went_back |= now <= newest;
        newest = now;
        pthread_mutex_unlock(&lock);
        if (i % 50 == 0) sched_yield();
    }
    return unused;
}

int main(void) {
    long long began, readings = 0, coarse = 0;
    struct timespec cpu;
    struct timeval day;
    pthread_t threads[2];
    int status;

    setvbuf(stdout, NULL, _IOLBF, 0);
    steps("real", CLOCKS[0]);
    steps("mono", CLOCKS[1]);
    steps("raw", CLOCKS[2]);
    steps("boot", CLOCKS[3]);
    for (int i = 0; i < 2; i++) {
        long long page = by_page(COARSE[i]), call = by_call(COARSE[i]), fine = by_page(CLOCKS[i]);
        coarse |= call < page || fine < call || fine - page > 5000000;
    }
    gettimeofday(&day, NULL);
    coarse |= by_page(CLOCK_REALTIME) / 1000 - (day.tv_sec * 1000000LL + day.tv_usec) > 1000;
    printf("disagreements %lld\n", coarse);

    began = by_page(CLOCK_MONOTONIC);
    for (int i = 0; i < 1000; i++) by_page(CLOCK_REALTIME);
    printf("a_reading_ns %lld\n", (by_page(CLOCK_MONOTONIC) - began) / 1000);
    began = by_page(CLOCK_MONOTONIC);
    for (int i = 0; i < 1000; i++) by_call(CLOCK_REALTIME);
    printf("a_call_ns %lld\n", (by_page(CLOCK_MONOTONIC) - began) / 1000);

    for (began = by_page(CLOCK_MONOTONIC); by_page(CLOCK_MONOTONIC) - began < 50000000; readings++)
        ;
    printf("waited_readings %lld\n", readings);
    for (time_t second = time(NULL); time(NULL) == second;)
        ;
    for (long long tick = by_page(CLOCK_MONOTONIC_COARSE); by_page(CLOCK_MONOTONIC_COARSE) == tick;)
        ;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    printf("cpu_ms %lld\n", ns(&cpu) / 1000000);

    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, reader, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    began = by_page(CLOCK_MONOTONIC);
    if (fork() == 0) _exit(by_page(CLOCK_MONOTONIC) <= began);
    wait(&status);
    printf("went_back %d\n", went_back | status | (by_page(CLOCK_MONOTONIC) <= began));
    return 0;
}
