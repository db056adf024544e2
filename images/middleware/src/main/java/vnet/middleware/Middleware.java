package vnet.middleware;

import java.util.function.Consumer;

/**
 * One middleware: it carries bytes between two programs, in three patterns, each with its receiving side.
 *
 * <p>A new one is a class that implements this and a line in known.json. A middleware that has no publish-subscribe of its own has
 * none to write: its subscribers are called back.
 */
public interface Middleware {
    /** Where one listens. A middleware that needs a port for each pattern takes the two that follow. */
    record Address(String host, int port) {
        public Address plus(int ports) {
            return new Address(host, port + ports);
        }
    }

    /** The receiving side of requests and pushes; called by the library's threads, several at once. */
    interface Receiver {
        byte[] answer(byte[] request) throws Exception;

        void take(byte[] message) throws Exception;
    }

    /** The sending side of requests and pushes; called by one thread. */
    interface Caller extends AutoCloseable {
        byte[] request(byte[] message) throws Exception;

        void push(byte[] message) throws Exception;
    }

    /** The sending side of what is published; called by one thread. */
    interface Publisher extends AutoCloseable {
        void publish(byte[] message) throws Exception;
    }

    /** Ports between the listening side of requests and pushes and that of subscribers. */
    int PUBLISH = 2;

    AutoCloseable serve(Address at, Receiver receiver) throws Exception;

    /** Fails while nobody listens there: it is tried again until its time is over. */
    Caller connect(Address to) throws Exception;

    /** Listens for subscribers. */
    default Publisher publisher(Address at) throws Exception {
        return CallBack.publisher(this, at);
    }

    /** Subscribes at a publisher; where it calls back, it does so at `own`. */
    default AutoCloseable subscribe(Address to, Address own, Consumer<byte[]> each) throws Exception {
        return CallBack.subscribe(this, to, own, each);
    }
}
