package vnet.middleware;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Keeps the account of this program's messages (docs/accounting.md): reads the flows to send, and writes records. */
final class Account implements AutoCloseable {
    private static final long FILE_READ_MS = 10;
    private static final long RECORDS_MS = 20; // interval at which a separate thread writes records

    /** A flow to send: message `seq` is due at t0 + timesNs[seq]; in a greedy flow, once the message before has left. All times are offsets from t0. */
    record Sends(int number, List<String> to, boolean greedy, long[] timesNs, long startNs, long stopNs) {}

    final String endpoint;
    private final File flows = new File(System.getenv("VNET_FLOWS"));
    private final OutputStream records = new FileOutputStream(System.getenv("VNET_RECORDS"), true);
    private final ConcurrentLinkedQueue<String> lines = new ConcurrentLinkedQueue<>();
    private final long offsetNs;
    /** Numbers of the flows with schedules; they have few messages, so the program records spans for each. */
    private final Set<Integer> calm = new HashSet<>();
    private volatile long t0Ns = Long.MAX_VALUE;

    Account() throws IOException {
        JsonNode told = told();
        endpoint = told.get("endpoint").asText();
        offsetNs = told.get("clock_offset_ns").asLong();
        for (JsonNode one : told.get("sends")) {
            if (!one.get("schedule").isNull()) {
                calm.add(one.get("number").asInt());
            }
        }
        for (JsonNode one : told.get("receives")) {
            if (!one.get("greedy").asBoolean()) {
                calm.add(one.get("number").asInt());
            }
        }
        Thread writer = new Thread(this::write, "records");
        writer.setDaemon(true);
        writer.start();
    }

    private JsonNode told() throws IOException {
        return new ObjectMapper().readTree(flows);
    }

    /** Returns the Unix time of the lab's clock in nanoseconds, from nanoTime, which is CLOCK_MONOTONIC. */
    long nowNs() {
        return System.nanoTime() + offsetNs;
    }

    boolean begun() {
        return t0Ns != Long.MAX_VALUE;
    }

    long t0Ns() {
        return t0Ns;
    }

    /** Waits until the file of flows has t0, the start of the scenario; returns the flows to send. */
    List<Sends> awaitStart() throws IOException, InterruptedException {
        JsonNode told = told();
        while (told.get("t0_ns").isNull()) {
            Thread.sleep(FILE_READ_MS);
            told = told();
        }
        List<Sends> sends = new ArrayList<>();
        for (JsonNode one : told.get("sends")) {
            List<String> to = new ArrayList<>();
            one.get("to").forEach(peer -> to.add(peer.get("endpoint").asText()));
            if (one.get("times_ns").isNull()) {
                throw new IOException("flow " + one.get("number") + ": more messages than this program is told");
            }
            long[] times = new long[one.get("times_ns").size()];
            for (int i = 0; i < times.length; i++) {
                times[i] = one.get("times_ns").get(i).asLong();
            }
            boolean greedy = one.get("schedule").isNull();
            sends.add(new Sends(
                    one.get("number").asInt(), to, greedy, times, one.get("start_ns").asLong(), one.get("stop_ns").asLong()));
        }
        t0Ns = told.get("t0_ns").asLong();
        return sends;
    }

    void step(String what) {
        lines.add("C," + endpoint + "," + what + "," + nowNs() + ",\n");
    }

    /** Records a span of work for a message from `fromNs` until now, unless the message is of a greedy flow or a warm-up message. */
    void span(String what, Envelope message, long fromNs) {
        if (calm.contains(message.flow())) {
            lines.add("P," + endpoint + "," + what + "," + message.flow() + "," + message.seq() + "," + fromNs + ","
                    + (nowNs() - fromNs) + "\n");
        }
    }

    /** Records a span that belongs to no message. */
    void span(String what, long fromNs, long lengthNs) {
        lines.add("P," + endpoint + "," + what + ",,," + fromNs + "," + lengthNs + "\n");
    }

    void arrived(Envelope message, long atNs) {
        received(message, endpoint, 0, atNs);
    }

    void answered(Envelope message, String by, long atNs) {
        received(message, by, 1, atNs);
    }

    private void received(Envelope message, String receiver, int leg, long atNs) {
        if (message.flow() != Envelope.WARM_UP) {
            lines.add("R," + message.flow() + "," + message.seq() + "," + receiver + "," + leg + "," + atNs + ",0\n");
        }
    }

    void sent(Envelope message, int bytes, long dueNs, long sentNs, long settledNs, String outcome) {
        int attempts = sentNs == 0 ? 0 : 1;
        lines.add("S," + message.flow() + "," + message.seq() + "," + bytes + "," + dueNs + "," + sentNs + "," + settledNs + ","
                + attempts + "," + outcome + "\n");
    }

    private void write() {
        try {
            while (true) {
                flush();
                Thread.sleep(RECORDS_MS);
            }
        } catch (IOException | InterruptedException e) {
            e.printStackTrace();
        }
    }

    private synchronized void flush() throws IOException {
        StringBuilder text = new StringBuilder();
        for (String line = lines.poll(); line != null; line = lines.poll()) {
            text.append(line);
        }
        records.write(text.toString().getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public void close() throws IOException {
        flush();
    }
}
