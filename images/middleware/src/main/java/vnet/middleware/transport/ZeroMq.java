package vnet.middleware.transport;

import java.util.function.Consumer;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;
import org.zeromq.ZMQException;
import vnet.middleware.Middleware;

/** Carries bytes by ZeroMQ in Java (JeroMQ): REQ and REP for requests, PUSH and PULL on the next port for pushes, PUB and SUB for publications. */
public final class ZeroMq implements Middleware {
    private static final int SILENCE_MS = 10_000; // receive timeout of requests; a flooded JVM that still compiles takes seconds

    private interface Turn {
        void take(byte[] message) throws Exception;
    }

    @Override
    public AutoCloseable serve(Address at, Receiver receiver) {
        ZContext context = new ZContext();
        ZMQ.Socket answering = bound(context, SocketType.REP, at);
        ZMQ.Socket pulling = bound(context, SocketType.PULL, at.plus(1));
        loop("answering", answering, message -> answering.send(receiver.answer(message)));
        loop("pulling", pulling, receiver::take);
        return context;
    }

    @Override
    public Caller connect(Address to) {
        ZContext context = new ZContext();
        ZMQ.Socket asking = connected(context, SocketType.REQ, to);
        asking.setReceiveTimeOut(SILENCE_MS);
        asking.setReqRelaxed(true);
        asking.setReqCorrelate(true);
        ZMQ.Socket pushing = connected(context, SocketType.PUSH, to.plus(1));
        return new Caller() {
            @Override
            public byte[] request(byte[] message) {
                asking.send(message);
                byte[] answer = asking.recv();
                if (answer == null) {
                    throw new IllegalStateException("no answer within " + SILENCE_MS + " ms");
                }
                return answer;
            }

            @Override
            public void push(byte[] message) {
                pushing.send(message);
            }

            @Override
            public void close() {
                context.close();
            }
        };
    }

    @Override
    public Publisher publisher(Address at) {
        ZContext context = new ZContext();
        ZMQ.Socket publishing = bound(context, SocketType.PUB, at);
        return new Publisher() {
            @Override
            public void publish(byte[] message) {
                publishing.send(message);
            }

            @Override
            public void close() {
                context.close();
            }
        };
    }

    @Override
    public AutoCloseable subscribe(Address to, Address own, Consumer<byte[]> each) {
        ZContext context = new ZContext();
        ZMQ.Socket subscribed = connected(context, SocketType.SUB, to);
        subscribed.subscribe(ZMQ.SUBSCRIPTION_ALL);
        loop("subscribed", subscribed, each::accept);
        return context;
    }

    private static ZMQ.Socket bound(ZContext context, SocketType type, Address at) {
        ZMQ.Socket socket = context.createSocket(type);
        socket.setLinger(0);
        socket.bind("tcp://" + at.host() + ":" + at.port());
        return socket;
    }

    private static ZMQ.Socket connected(ZContext context, SocketType type, Address to) {
        ZMQ.Socket socket = context.createSocket(type);
        socket.setLinger(0);
        socket.connect("tcp://" + to.host() + ":" + to.port());
        return socket;
    }

    /** Receives messages in a separate thread until the context closes. */
    private static void loop(String name, ZMQ.Socket socket, Turn turn) {
        Thread thread = new Thread(
                () -> {
                    while (!Thread.currentThread().isInterrupted()) {
                        byte[] message;
                        try {
                            message = socket.recv();
                        } catch (ZMQException e) {
                            return; // closed
                        }
                        if (message != null) {
                            try {
                                turn.take(message);
                            } catch (Exception e) {
                                e.printStackTrace();
                            }
                        }
                    }
                },
                "zeromq-" + name);
        thread.setDaemon(true);
        thread.start();
    }
}
