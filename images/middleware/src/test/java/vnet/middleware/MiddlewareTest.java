package vnet.middleware;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.net.BindException;
import java.net.ServerSocket;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import vnet.middleware.Middleware.Address;
import vnet.middleware.Middleware.Caller;
import vnet.middleware.Middleware.Publisher;
import vnet.middleware.Middleware.Receiver;

/** Tests that each middleware exchanges messages over loopback, in each pattern. */
class MiddlewareTest {
    private static final int MESSAGES = 20;
    private static final int BYTES = 16_000; // more than any serialiser's output, so that every pair fits
    private static final int PORTS = 3;
    private static final AtomicInteger NEXT = new AtomicInteger(21_000);

    static List<String> names() {
        return Known.names("middleware");
    }

    @ParameterizedTest
    @MethodSource("names")
    @Timeout(60)
    void requestsAreAnsweredAndPushesArrive(String name) throws Exception {
        Middleware middleware = Known.middleware(name);
        Address at = free();
        BlockingQueue<byte[]> taken = new LinkedBlockingQueue<>();
        try (AutoCloseable server = middleware.serve(at, receiver(taken));
                Caller caller = middleware.connect(at)) {
            for (int i = 0; i < MESSAGES; i++) {
                byte[] message = message(i);
                assertArrayEquals(turned(message), caller.request(message));
                caller.push(message);
                byte[] pushed = taken.poll(20, TimeUnit.SECONDS);
                assertNotNull(pushed, "pushed message " + i + " did not arrive");
                assertArrayEquals(message, pushed);
            }
        }
    }

    @ParameterizedTest
    @MethodSource("names")
    @Timeout(60)
    void whatIsPublishedArrives(String name) throws Exception {
        Middleware middleware = Known.middleware(name);
        BlockingQueue<byte[]> taken = new LinkedBlockingQueue<>();
        Address at = free();
        try (Publisher publisher = middleware.publisher(at);
                AutoCloseable subscriber = middleware.subscribe(at, free(), taken::add)) {
            byte[] message = message(7);
            byte[] found = null;
            for (int i = 0; i < 100 && found == null; i++) { // until the subscription is active
                publisher.publish(message);
                found = taken.poll(100, TimeUnit.MILLISECONDS);
            }
            assertNotNull(found, "nothing arrived");
            assertArrayEquals(message, found);
        }
    }

    private static Receiver receiver(BlockingQueue<byte[]> taken) {
        return new Receiver() {
            @Override
            public byte[] answer(byte[] request) {
                return turned(request);
            }

            @Override
            public void take(byte[] message) {
                taken.add(message);
            }
        };
    }

    private static byte[] message(int number) {
        byte[] message = new byte[BYTES];
        for (int i = 0; i < BYTES; i++) {
            message[i] = (byte) (i * 31 + number);
        }
        return message;
    }

    private static byte[] turned(byte[] message) {
        byte[] turned = new byte[message.length];
        for (int i = 0; i < message.length; i++) {
            turned[i] = message[message.length - 1 - i];
        }
        return turned;
    }

    /** Returns the first of three free ports, below the kernel's ephemeral ports. */
    private static Address free() throws Exception {
        while (true) {
            int port = NEXT.getAndAdd(PORTS);
            try (ServerSocket first = new ServerSocket(port);
                    ServerSocket second = new ServerSocket(port + 1);
                    ServerSocket third = new ServerSocket(port + 2)) {
                return new Address("127.0.0.1", port);
            } catch (BindException e) {
                continue; // in use
            }
        }
    }
}
