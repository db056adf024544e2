package vnet.middleware;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import vnet.middleware.Middleware.Address;
import vnet.middleware.Middleware.Caller;
import vnet.middleware.Middleware.Publisher;
import vnet.middleware.Middleware.Receiver;

/** Gives publish-subscribe to a middleware that lacks it: a subscriber listens and registers at the publisher, which pushes each message to it. */
final class CallBack {
    private CallBack() {}

    static Publisher publisher(Middleware middleware, Address at) throws Exception {
        Map<Address, Caller> subscribers = new ConcurrentHashMap<>();
        AutoCloseable server = middleware.serve(at, new Receiver() {
            @Override
            public byte[] answer(byte[] request) throws Exception {
                String[] words = new String(request, StandardCharsets.US_ASCII).split(" ");
                Address subscriber = new Address(words[0], Integer.parseInt(words[1]));
                subscribers.put(subscriber, middleware.connect(subscriber));
                return new byte[] {1};
            }

            @Override
            public void take(byte[] message) {
                throw new IllegalStateException("a publisher takes no messages");
            }
        });
        return new Publisher() {
            @Override
            public void publish(byte[] message) throws Exception {
                for (Caller subscriber : subscribers.values()) {
                    subscriber.push(message);
                }
            }

            @Override
            public void close() throws Exception {
                for (Caller subscriber : subscribers.values()) {
                    subscriber.close();
                }
                server.close();
            }
        };
    }

    static AutoCloseable subscribe(Middleware middleware, Address to, Address own, Consumer<byte[]> each) throws Exception {
        AutoCloseable server = middleware.serve(own, new Receiver() {
            @Override
            public byte[] answer(byte[] request) {
                throw new IllegalStateException("a subscriber answers nothing");
            }

            @Override
            public void take(byte[] message) {
                each.accept(message);
            }
        });
        try (Caller publisher = middleware.connect(to)) {
            publisher.request((own.host() + " " + own.port()).getBytes(StandardCharsets.US_ASCII));
            return server;
        } catch (Exception e) {
            server.close();
            throw e;
        }
    }
}
