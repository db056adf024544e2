/* Serves single bytes on port 9000, or asks a server 100 times, as its argument says; without a shared library. */
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int count, char **words)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(9000)};
    int one = socket(AF_INET, SOCK_STREAM, 0), right = 0;
    char byte;

    if (count < 2) {
        if (bind(one, (struct sockaddr *)&at, sizeof(at)) || listen(one, 8))
            return 1;
        puts("listening");
        fflush(stdout);
        for (int peer; (peer = accept(one, NULL, NULL)) >= 0; close(peer))
            while (read(peer, &byte, 1) == 1 && write(peer, &byte, 1) == 1)
                ;
        return 1;
    }
    if (inet_pton(AF_INET, words[1], &at.sin_addr) != 1 || connect(one, (struct sockaddr *)&at, sizeof(at)))
        return 1;
    for (int number = 0; number < 100; number++) {
        char sent = number;
        right += write(one, &sent, 1) == 1 && read(one, &byte, 1) == 1 && byte == sent;
        usleep(20000);
    }
    printf("right %d\n", right);
    return 0;
}
