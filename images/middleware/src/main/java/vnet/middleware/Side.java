package vnet.middleware;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import vnet.middleware.Account.Sends;
import vnet.middleware.Middleware.Caller;
import vnet.middleware.Middleware.Publisher;
import vnet.middleware.Middleware.Receiver;
import vnet.middleware.node.Mmxu;

/** One side of an exchange: listens or connects, warms up, reports that it is ready, and then sends due messages. */
final class Side {
    static final String READY = "vnet: ready"; // the text that the planner's probe expects
    private static final long RETRY_MS = 200;
    private static final long CONNECTED_WITHIN_NS = 60_000_000_000L;
    private static final long PUBLISHED_EVERY_NS = 1_000_000;
    private static final long WARMING_SAID_NS = 50_000_000;
    private static final long SPIN_NS = 200_000; // sleeps end this late, so the rest of a wait spins

    /** References held as long as the program runs, since RMI collects unreferenced objects. */
    private static final List<AutoCloseable> OPEN = new ArrayList<>();

    private final Settings settings;
    private final Account account;
    private final Middleware middleware;
    private final ThreadLocal<Serialiser> serialisers;
    private final Mmxu object;
    private boolean told; // the first failure is printed in full

    Side(Settings settings, Account account) throws ReflectiveOperationException {
        this.settings = settings;
        this.account = account;
        middleware = Known.middleware(settings.middleware());
        object = Mmxu.filled(settings.seed());
        Known.serialiser(settings.serialiser()).carries(settings.serialiser(), object);
        serialisers = ThreadLocal.withInitial(() -> {
            try {
                return Known.serialiser(settings.serialiser());
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(settings.serialiser(), e);
            }
        });
    }

    void run() throws Exception {
        if (settings.side().equals("listen")) {
            listen();
        } else if (settings.patterns().contains("publish")) {
            subscribe();
        } else {
            call();
        }
        new CountDownLatch(1).await(); // wait until the program is stopped
    }

    private byte[] written(Envelope envelope) throws Exception {
        long fromNs = account.nowNs();
        byte[] object = serialisers.get().write(this.object);
        account.span("write", envelope, fromNs);
        return envelope.before(object);
    }

    /** Deserialises the object in a message, records the span, and returns the time afterwards. */
    private long read(byte[] message) {
        try {
            long fromNs = account.nowNs();
            serialisers.get().read(Envelope.object(message));
            account.span("read", Envelope.of(message), fromNs);
            return account.nowNs();
        } catch (Exception e) {
            throw new IllegalStateException("an object that the serialiser cannot read", e);
        }
    }

    private void arrived(byte[] message) {
        account.arrived(Envelope.of(message), read(message));
    }

    private void listen() throws Exception {
        if (settings.patterns().contains("request") || settings.patterns().contains("push")) {
            OPEN.add(middleware.serve(settings.address(), new Receiver() {
                @Override
                public byte[] answer(byte[] request) throws Exception {
                    Envelope envelope = Envelope.of(request);
                    account.arrived(envelope, account.nowNs());
                    return written(envelope);
                }

                @Override
                public void take(byte[] message) {
                    arrived(message);
                }
            }));
        }
        if (!settings.patterns().contains("publish")) {
            ready("listening");
            account.awaitStart();
            return;
        }
        Publisher publisher = middleware.publisher(settings.address().plus(Middleware.PUBLISH));
        OPEN.add(publisher);
        ready("listening");
        Thread warming = new Thread(() -> warm(publisher), "warming");
        warming.start();
        List<Sends> sends = account.awaitStart();
        warming.join();
        for (Sends flow : sends) {
            send(flow, envelope -> {
                byte[] message = written(envelope);
                publisher.publish(message);
                return message.length;
            });
        }
    }

    /** Publishes warm-up messages until the start of the scenario is known, since subscribers arrive at any time. */
    private void warm(Publisher publisher) {
        try {
            for (long seq = 0; !account.begun(); seq++) { // OPC UA reports only values that differ from the last one
                publisher.publish(written(new Envelope(Envelope.WARM_UP, seq)));
                TimeUnit.NANOSECONDS.sleep(PUBLISHED_EVERY_NS);
            }
        } catch (Exception e) {
            throw new IllegalStateException("publishing", e);
        }
    }

    private void subscribe() throws Exception {
        long began = account.nowNs();
        CountDownLatch warm = new CountDownLatch(1);
        OPEN.add(retried(() -> middleware.subscribe(settings.address().plus(Middleware.PUBLISH), settings.own(), message -> {
            arrived(message);
            if (account.nowNs() - began >= settings.warmUpNs()) {
                warm.countDown();
            }
        })));
        if (!warm.await(CONNECTED_WITHIN_NS, TimeUnit.NANOSECONDS)) {
            throw new IllegalStateException("nothing was published within " + CONNECTED_WITHIN_NS / 1_000_000_000L + " s");
        }
        ready("subscribed");
        account.awaitStart();
    }

    private void call() throws Exception {
        Caller caller = retried(() -> middleware.connect(settings.address()));
        boolean asks = settings.patterns().contains("request");
        Envelope warm = new Envelope(Envelope.WARM_UP, 0);
        if (asks) {
            retried(() -> caller.request(warm.before(new byte[0]))); // the server may answer slightly later than it listens
        }
        long saidNs = 0;
        for (long nowNs = account.nowNs(), until = nowNs + settings.warmUpNs(); nowNs < until; ) {
            long fromNs = nowNs;
            if (asks) {
                read(caller.request(warm.before(new byte[0])));
            } else {
                caller.push(written(warm));
            }
            nowNs = account.nowNs();
            if (fromNs - saidNs >= WARMING_SAID_NS) { // only some of many
                account.span("warm-up", fromNs, nowNs - fromNs);
                saidNs = fromNs;
            }
        }
        if (!asks) { // a final request, answered after all pushes: a library without back pressure may have queued them
            retried(() -> caller.request(warm.before(new byte[0])));
        }
        ready("connected");
        for (Sends flow : account.awaitStart()) {
            String to = flow.to().get(0);
            if (asks) {
                ask(flow, to, caller);
            } else {
                send(flow, envelope -> {
                    byte[] message = written(envelope);
                    caller.push(message);
                    return message.length;
                });
            }
        }
    }

    private void ask(Sends flow, String to, Caller caller) throws InterruptedException {
        each(flow, (envelope, dueNs) -> {
            byte[] request = envelope.before(new byte[0]);
            long sentNs = account.nowNs();
            try {
                long readNs = read(caller.request(request));
                account.answered(envelope, to, readNs);
                account.sent(envelope, request.length, dueNs, sentNs, readNs, "settled");
                return true;
            } catch (Exception e) {
                failed(e);
                account.sent(envelope, request.length, dueNs, sentNs, 0, "unsettled");
                return false;
            }
        });
    }

    private interface Sending {
        /** Sends the message; returns its length in bytes. */
        int send(Envelope envelope) throws Exception;
    }

    private void send(Sends flow, Sending sending) throws InterruptedException {
        each(flow, (envelope, dueNs) -> {
            long sentNs = account.nowNs();
            try {
                account.sent(envelope, sending.send(envelope), dueNs, sentNs, 0, "sent");
                return true;
            } catch (Exception e) {
                failed(e);
                account.sent(envelope, Envelope.BYTES, dueNs, 0, 0, "unsent");
                return false;
            }
        });
    }

    private interface Turn {
        /** Sends the message and records its outcome; returns whether it succeeded. */
        boolean send(Envelope envelope, long dueNs);
    }

    private void each(Sends flow, Turn turn) throws InterruptedException {
        if (flow.greedy()) {
            greedily(flow, turn);
        } else {
            scheduled(flow, turn);
        }
    }

    /** Sends one message after another; pauses after a failure, so that a dead partner does not fill the records. */
    private void greedily(Sends flow, Turn turn) throws InterruptedException {
        await(account.t0Ns() + flow.startNs());
        long endNs = account.t0Ns() + flow.stopNs();
        for (long seq = 0, dueNs = account.nowNs(); dueNs < endNs; seq++, dueNs = account.nowNs()) {
            if (!turn.send(new Envelope(flow.number(), seq), dueNs)) {
                TimeUnit.MILLISECONDS.sleep(RETRY_MS);
            }
        }
    }

    private void await(long dueNs) throws InterruptedException {
        long leftNs = dueNs - account.nowNs();
        if (leftNs > SPIN_NS) {
            TimeUnit.NANOSECONDS.sleep(leftNs - SPIN_NS);
        }
        while (account.nowNs() < dueNs) {
            Thread.onSpinWait();
        }
    }

    /**
     * Sends every message when it is due, or as soon as the one before has left. Records a message that is late by giveUpNs or more as
     * dropped, and one whose turn comes after the flow's end as unsent.
     */
    private void scheduled(Sends flow, Turn turn) throws InterruptedException {
        long endNs = account.t0Ns() + flow.stopNs();
        for (int seq = 0; seq < flow.timesNs().length; seq++) {
            Envelope envelope = new Envelope(flow.number(), seq);
            long dueNs = account.t0Ns() + flow.timesNs()[seq];
            await(dueNs);
            long nowNs = account.nowNs();
            if (nowNs - dueNs >= settings.giveUpNs()) {
                account.sent(envelope, Envelope.BYTES, dueNs, 0, 0, "dropped");
            } else if (nowNs < endNs) {
                turn.send(envelope, dueNs);
            } else {
                account.sent(envelope, Envelope.BYTES, dueNs, 0, 0, "unsent");
            }
        }
    }

    /** Prints the first failure in full; later ones are visible only in the records. */
    private void failed(Exception e) {
        if (!told) {
            told = true;
            e.printStackTrace();
        }
    }

    private void ready(String step) {
        account.step(step);
        System.out.println(READY);
    }

    private interface Try<T> {
        T get() throws Exception;
    }

    /** Calls `what` until it succeeds, since the other side may start later; after CONNECTED_WITHIN_NS throws its last exception. */
    private <T> T retried(Try<T> what) throws Exception {
        long until = account.nowNs() + CONNECTED_WITHIN_NS;
        while (true) {
            try {
                return what.get();
            } catch (Exception e) {
                if (account.nowNs() > until) {
                    throw e;
                }
                Thread.sleep(RETRY_MS);
            }
        }
    }
}
