/* Sends or takes messages over UDP: both send|take PORT. */
#define _POSIX_C_SOURCE 200809L
#include "vnet_accounting.h"
#include <arpa/inet.h>
#include <sys/socket.h>

int main(int argc, char **argv) {
    struct sockaddr_in end = {.sin_family = AF_INET, .sin_port = htons(argc > 2 ? atoi(argv[2]) : 0)};
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    static char text[65536];
    vnet_open();
    if (strcmp(argv[1], "send") == 0) {
        const vnet_message *message;
        while ((message = vnet_due()) != NULL) {
            long long sent_ns = vnet_now_ns();
            memset(text, '.', sizeof text);
            text[snprintf(text, sizeof text, "%u %llu ", message->flow, message->seq)] = '.';
            for (int i = 0; i < message->peers; i++) {
                inet_pton(AF_INET, message->to[i].address, &end.sin_addr);
                sendto(s, text, message->size, 0, (struct sockaddr *)&end, sizeof end);
            }
            vnet_sent(message, sent_ns);
        }
        return 0;
    }
    if (bind(s, (struct sockaddr *)&end, sizeof end)) return perror("bind"), 1;
    vnet_listening();
    puts("listening"), fflush(stdout);
    for (;;) {
        unsigned flow;
        unsigned long long seq;
        text[recv(s, text, sizeof text - 1, 0)] = 0;
        if (sscanf(text, "%u %llu", &flow, &seq) == 2) vnet_received(flow, seq, 0);
    }
}
