/* A server in C: one thread, epoll, connections that stay open, and a fixed amount of arithmetic for every request.
 *   server PORT [EXTRA]      EXTRA: rounds of it more than its own */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OWN = 60000, EVENTS = 64, REQUEST = 4096, DESCRIPTORS = 1024 };

/* What has come of a request so far, by descriptor. */
static struct { size_t length; char bytes[REQUEST]; } requests[DESCRIPTORS];

static volatile uint64_t result;

/* Rounds that wait for one another, so that no compiler or processor does several at once. */
static uint64_t work(long rounds) {
    uint64_t x = 1;
    for (long round = 0; round < rounds; round++) x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void answer(int fd, long extra) {
    char body[64], head[160];
    int length = snprintf(body, sizeof body, "%016llx\n", (unsigned long long)work(OWN));
    result = work(extra);
    int size = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", length, body);
    /* Some hundred bytes fit into the buffer of any socket; a client that has gone is no affair of ours. */
    if (send(fd, head, size, MSG_NOSIGNAL) != size) perror("send");
}

/* Reads what has come and answers what is whole; whether the connection goes on. */
static int serve(int fd, long extra) {
    size_t length = requests[fd].length;
    ssize_t more = recv(fd, requests[fd].bytes + length, REQUEST - length, 0);
    if (more <= 0) return 0;
    length += more;
    for (;;) {
        char *end = memmem(requests[fd].bytes, length, "\r\n\r\n", 4);
        if (!end) break;
        answer(fd, extra);
        size_t done = end + 4 - requests[fd].bytes;
        memmove(requests[fd].bytes, requests[fd].bytes + done, length - done);
        length -= done;
    }
    requests[fd].length = length;
    return length < REQUEST;
}

static int listen_on(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 128)) die("cannot listen");
    return fd;
}

static void watch(int events, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(events, EPOLL_CTL_ADD, fd, &event)) die("epoll_ctl");
}

static void take(int listener, int events) {
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), one = 1;
    if (fd < 0) return;
    if (fd >= DESCRIPTORS) { close(fd); return; }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    requests[fd].length = 0;
    watch(events, fd);
}

int main(int count, char **arguments) {
    if (count < 2) {
        fprintf(stderr, "usage: server PORT [EXTRA]\n");
        return 2;
    }
    long extra = count > 2 ? atol(arguments[2]) : 0;
    int listener = listen_on(atoi(arguments[1])), events = epoll_create1(EPOLL_CLOEXEC);
    watch(events, listener);
    for (;;) {
        struct epoll_event ready[EVENTS];
        int found = epoll_wait(events, ready, EVENTS, -1);
        for (int i = 0; i < found; i++) {
            int fd = ready[i].data.fd;
            if (fd == listener) take(listener, events);
            else if (!serve(fd, extra)) close(fd);
        }
    }
}
