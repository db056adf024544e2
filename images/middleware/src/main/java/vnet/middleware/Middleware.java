package vnet.middleware;

import java.util.function.Consumer;

/**
 * Carries bytes between two programs by one middleware, in three patterns (request, push, publish), each with a receiving side.
 *
 * <p>A new middleware is a class that implements this interface, and a line in known.json. A middleware without publish-subscribe
 * keeps the default methods: its publisher calls its subscribers back (CallBack).
 */
public interface Middleware {
    /** The address of the listening side. A middleware that needs a port for each pattern also uses the next two. */
    record Address(String host, int port) {
        public Address plus(int ports) {
            return new Address(host, port + ports);
        }
    }

    /** The receiving side of requests and pushes; the library's threads call it concurrently. */
    interface Receiver {
        byte[] answer(byte[] request) throws Exception;

        void take(byte[] message) throws Exception;
    }

    /** The sending side of requests and pushes; one thread calls it. */
    interface Caller extends AutoCloseable {
        byte[] request(byte[] message) throws Exception;

        void push(byte[] message) throws Exception;
    }

    /** The sending side of publications; one thread calls it. */
    interface Publisher extends AutoCloseable {
        void publish(byte[] message) throws Exception;
    }

    /** Offset from the port for requests and pushes to the port for subscribers. */
    int PUBLISH = 2;

    AutoCloseable serve(Address at, Receiver receiver) throws Exception;

    /** Connects; fails while the other side does not listen yet, and the caller retries until a timeout. */
    Caller connect(Address to) throws Exception;

    /** Listens for subscribers. */
    default Publisher publisher(Address at) throws Exception {
        return CallBack.publisher(this, at);
    }

    /** Subscribes to a publisher; a publisher that calls back does so at `own`. */
    default AutoCloseable subscribe(Address to, Address own, Consumer<byte[]> each) throws Exception {
        return CallBack.subscribe(this, to, own, each);
    }
}
