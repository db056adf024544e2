// libzmq's own cost of the benchmark's messages: a DEALER that sends at a steady rate, and a DEALER that reads them all.
//   zeromq_peer send ENDPOINT COUNT BYTES PER_S | zeromq_peer receive ENDPOINT COUNT
// Declares libzmq.so.5's functions itself, as vNET's agent does, so that it needs no headers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void *zmq_ctx_new(void);
void *zmq_socket(void *, int);
int zmq_setsockopt(void *, int, const void *, size_t);
int zmq_bind(void *, const char *);
int zmq_connect(void *, const char *);
int zmq_send(void *, const void *, size_t, int);
int zmq_recv(void *, void *, size_t, int);
int zmq_close(void *);
int zmq_ctx_term(void *);
enum { DEALER = 5, SNDHWM = 23, RCVHWM = 24 };

static void check(int result, const char *what) {
  if (result >= 0) return;
  perror(what);
  exit(1);
}

int main(int argc, char **argv) {
  if (argc < 4) return fputs("zeromq_peer send ENDPOINT COUNT BYTES PER_S | receive ENDPOINT COUNT\n", stderr), 2;
  int sends = !strcmp(argv[1], "send"), none = 0;
  long count = atol(argv[3]);
  size_t bytes = sends && argc == 6 ? (size_t)atol(argv[4]) : 65536;
  char *buffer = calloc(1, bytes);
  void *context = zmq_ctx_new(), *socket = zmq_socket(context, DEALER);
  check(zmq_setsockopt(socket, sends ? SNDHWM : RCVHWM, &none, sizeof none), "queue");
  check(sends ? zmq_connect(socket, argv[2]) : zmq_bind(socket, argv[2]), argv[2]);
  struct timespec due;
  clock_gettime(CLOCK_MONOTONIC, &due);
  long gap = sends && argc == 6 ? 1000000000 / atol(argv[5]) : 0;
  for (long number = 0; number < count; number++) {
    if (!sends) {
      check(zmq_recv(socket, buffer, bytes, 0), "receive");
      continue;
    }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    check(zmq_send(socket, buffer, bytes, 0), "send");
    due.tv_nsec += gap;
    if (due.tv_nsec >= 1000000000) due.tv_sec++, due.tv_nsec -= 1000000000;
  }
  zmq_close(socket);
  return zmq_ctx_term(context);
}
