/* Accounts for the messages of a program in a vNET lab (docs/accounting.md). Copy this file beside the program.
 *
 *   vnet_open();
 *   while ((message = vnet_due()) != NULL) { // each when it is due
 *       long long sent_ns = vnet_now_ns();
 *       ...
 *       vnet_sent(message, sent_ns);
 *   }
 *
 * A receiver calls vnet_received(flow, seq, 0) for each arrival: put both numbers into the message. C11 with
 * POSIX; for one source file and one thread. */
#ifndef VNET_ACCOUNTING_H
#define VNET_ACCOUNTING_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    char endpoint[256], address[64];
} vnet_peer;

typedef struct {
    unsigned flow;
    unsigned long long seq;
    long long size, scheduled_ns; /* bytes; Unix time */
    const vnet_peer *to;
    int peers;
} vnet_message;

static struct {
    char *text; /* the file with what vNET states, in JSON */
    char endpoint[256];
    long long offset_ns, t0_ns; /* t0_ns 0: not known yet */
    vnet_message *messages;
    size_t count, next;
    FILE *records;
} vnet_;

static void vnet_refuse(const char *text, const char *more) {
    fprintf(stderr, "vnet_accounting: %s%s\n", text, more);
    exit(1);
}

static const char *vnet_blank(const char *at) { return at + strspn(at, " \t\r\n"); }

/* Returns the place after the JSON value at `at`. */
static const char *vnet_skip(const char *at) {
    int depth = 0;
    do {
        at = vnet_blank(at);
        if (*at == '"') {
            for (at++; *at && *at != '"'; at++) at += *at == '\\' && at[1];
            at += *at == '"';
        } else if (strchr("{[", *at) && *at) {
            depth++, at++;
        } else if (strchr("}]", *at) && *at) {
            depth--, at++;
        } else if (strchr(",:", *at) && *at) {
            at++;
        } else {
            size_t size = strcspn(at, " \t\r\n,:]}");
            if (size == 0) vnet_refuse("VNET_FLOWS is no JSON", "");
            at += size;
        }
    } while (depth > 0);
    return at;
}

/* Returns the value of a key of the JSON object at `object`; NULL if it has none. */
static const char *vnet_member(const char *object, const char *key) {
    size_t size = strlen(key);
    for (const char *at = vnet_blank(object + 1); *at == '"';) {
        const char *value = vnet_blank(vnet_skip(at)) + 1;
        if (strncmp(at + 1, key, size) == 0 && at[size + 1] == '"') return vnet_blank(value);
        at = vnet_blank(vnet_skip(value));
        at = vnet_blank(*at == ',' ? at + 1 : at);
    }
    return NULL;
}

static const char *vnet_need(const char *object, const char *key) {
    const char *found = vnet_member(object, key);
    if (found == NULL) vnet_refuse("VNET_FLOWS has no ", key);
    return found;
}

/* Returns the first element of a JSON array, or with `last` the one after it; NULL at the end. */
static const char *vnet_element(const char *array, const char *last) {
    const char *at = vnet_blank(last ? vnet_skip(last) : array + 1);
    if (last && *at == ',') at = vnet_blank(at + 1);
    return *at == ']' || *at == 0 ? NULL : at;
}

static void vnet_text(const char *value, char *to, size_t room) {
    size_t size = strcspn(value + 1, "\"");
    if (size >= room) vnet_refuse("too long: ", value);
    memcpy(to, value + 1, size), to[size] = 0;
}

static void vnet_read(void) {
    FILE *file = fopen(getenv("VNET_FLOWS"), "r");
    if (file == NULL) vnet_refuse("cannot read ", getenv("VNET_FLOWS"));
    size_t have = 0, room = 1 << 16;
    free(vnet_.text);
    vnet_.text = malloc(room);
    for (size_t got; vnet_.text && (got = fread(vnet_.text + have, 1, room - have - 1, file)) > 0;) {
        have += got;
        if (room - have < 2) vnet_.text = realloc(vnet_.text, room *= 2);
    }
    fclose(file);
    if (vnet_.text == NULL) vnet_refuse("no memory", "");
    vnet_.text[have] = 0;
    const char *t0 = vnet_need(vnet_.text, "t0_ns");
    vnet_.t0_ns = *t0 == 'n' ? 0 : atoll(t0);
    vnet_.offset_ns = atoll(vnet_need(vnet_.text, "clock_offset_ns"));
    vnet_text(vnet_need(vnet_.text, "endpoint"), vnet_.endpoint, sizeof vnet_.endpoint);
}

/* Reads what vNET states; ends the program if vNET has not started it with `flows` or `receives`. */
static void vnet_open(void) {
    if (!getenv("VNET_FLOWS") || !getenv("VNET_RECORDS"))
        vnet_refuse("no VNET_FLOWS and VNET_RECORDS: the command needs `flows:` or `receives: true`", "");
    vnet_read();
    vnet_.records = fopen(getenv("VNET_RECORDS"), "a");
    if (vnet_.records == NULL) vnet_refuse("cannot open ", getenv("VNET_RECORDS"));
    setvbuf(vnet_.records, NULL, _IOLBF, 0); /* a line is written whole */
}

static void vnet_sleep(long long ns) {
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    if (ns > 0) nanosleep(&time, NULL);
}

/* Returns the lab's time in Unix nanoseconds. */
static long long vnet_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec + vnet_.offset_ns;
}

static int vnet_earlier(const void *one, const void *other) {
    const vnet_message *a = one, *b = other;
    if (a->scheduled_ns != b->scheduled_ns) return a->scheduled_ns < b->scheduled_ns ? -1 : 1;
    if (a->flow != b->flow) return a->flow < b->flow ? -1 : 1;
    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

static void vnet_flow(const char *flow) {
    const char *times = vnet_need(flow, "times_ns"), *to = vnet_need(flow, "to"), *one;
    char name[256];
    vnet_text(vnet_need(flow, "name"), name, sizeof name);
    if (*times == 'n') vnet_refuse(name, " has no list of times: it has more than 10,000 messages");
    vnet_message message = {.flow = (unsigned)atoll(vnet_need(flow, "number"))};
    message.size = atoll(vnet_need(vnet_need(flow, "payload"), "bytes"));
    vnet_peer *peers = NULL;
    for (one = NULL; (one = vnet_element(to, one)) != NULL; message.peers++) {
        peers = realloc(peers, (message.peers + 1) * sizeof *peers);
        if (peers == NULL) vnet_refuse("no memory", "");
        vnet_text(vnet_need(one, "endpoint"), peers[message.peers].endpoint, sizeof peers->endpoint);
        vnet_text(vnet_need(one, "address"), peers[message.peers].address, sizeof peers->address);
    }
    message.to = peers;
    for (one = NULL; (one = vnet_element(times, one)) != NULL; message.seq++) {
        vnet_.messages = realloc(vnet_.messages, (vnet_.count + 1) * sizeof message);
        if (vnet_.messages == NULL) vnet_refuse("no memory", "");
        message.scheduled_ns = vnet_.t0_ns + atoll(one);
        vnet_.messages[vnet_.count++] = message;
    }
}

/* Waits until vNET states when the scenario starts, and returns that time. */
static inline long long vnet_begin(void) {
    for (; vnet_.t0_ns == 0; vnet_read()) vnet_sleep(10000000);
    return vnet_.t0_ns;
}

/* Waits until the next message of all flows is due, and returns it; NULL after the last one. */
static inline const vnet_message *vnet_due(void) {
    if (vnet_.messages == NULL) {
        vnet_begin();
        const char *sends = vnet_need(vnet_.text, "sends");
        for (const char *one = NULL; (one = vnet_element(sends, one)) != NULL;) vnet_flow(one);
        if (vnet_.count) qsort(vnet_.messages, vnet_.count, sizeof *vnet_.messages, vnet_earlier);
    }
    if (vnet_.next == vnet_.count) return NULL;
    const vnet_message *message = &vnet_.messages[vnet_.next++];
    vnet_sleep(message->scheduled_ns - vnet_now_ns());
    return message;
}

static void vnet_outcome(
    const vnet_message *m, long long sent_ns, long long settled_ns, int attempts, const char *outcome) {
    if (sent_ns && sent_ns < m->scheduled_ns) sent_ns = m->scheduled_ns;
    fprintf(vnet_.records, "S,%u,%llu,%lld,%lld,%lld,%lld,%d,%s\n", m->flow, m->seq, m->size, m->scheduled_ns,
            sent_ns, settled_ns, attempts, outcome);
}

/* Records a message that was sent, and whose arrival the protocol does not confirm. */
static inline void vnet_sent(const vnet_message *m, long long sent_ns) { vnet_outcome(m, sent_ns, 0, 1, "sent"); }

/* Records a message that was acknowledged, or a request whose replies have all arrived. */
static inline void vnet_settled(const vnet_message *m, long long sent_ns, long long settled_ns, int attempts) {
    vnet_outcome(m, sent_ns, settled_ns, attempts, "settled");
}

/* Records a message that was sent, and whose acknowledgement or reply did not come. */
static inline void vnet_unsettled(const vnet_message *m, long long sent_ns, int attempts) {
    vnet_outcome(m, sent_ns, 0, attempts, "unsettled");
}

/* Records a message that was never sent. */
static inline void vnet_unsent(const vnet_message *m) { vnet_outcome(m, 0, 0, 0, "unsent"); }

/* Records an arrival at this program, now; copy: the protocol marks it as a repetition. */
static inline void vnet_received(unsigned flow, unsigned long long seq, int copy) {
    fprintf(vnet_.records, "R,%u,%llu,%s,0,%lld,%d\n", flow, seq, vnet_.endpoint, vnet_now_ns(), copy != 0);
}

/* Records the arrival of the reply of an endpoint to a request of this program, now. */
static inline void vnet_replied(unsigned flow, unsigned long long seq, const char *receiver) {
    fprintf(vnet_.records, "R,%u,%llu,%s,1,%lld,0\n", flow, seq, receiver, vnet_now_ns());
}

/* Records that this program takes messages from now on. */
static inline void vnet_listening(void) {
    fprintf(vnet_.records, "C,%s,listening,%lld,\n", vnet_.endpoint, vnet_now_ns());
}
#endif
