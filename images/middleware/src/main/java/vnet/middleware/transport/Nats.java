package vnet.middleware.transport;

import io.nats.client.Connection;
import io.nats.client.Dispatcher;
import io.nats.client.Message;
import io.nats.client.Options;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import vnet.middleware.Middleware;

/** Carries bytes by NATS. Its server runs beside the listening side, whose client also uses it, over loopback. */
public final class Nats implements Middleware {
    private static final Duration PATIENCE = Duration.ofSeconds(2);

    @Override
    public AutoCloseable serve(Address at, Receiver receiver) throws Exception {
        Daemon server = daemon(at);
        Connection connection = connected(at);
        Dispatcher dispatcher = connection.createDispatcher();
        dispatcher.subscribe("request", message -> {
            try {
                connection.publish(message.getReplyTo(), receiver.answer(message.getData()));
            } catch (Exception e) {
                e.printStackTrace();
            }
        });
        dispatcher.subscribe("push", message -> {
            try {
                receiver.take(message.getData());
            } catch (Exception e) {
                e.printStackTrace();
            }
        });
        connection.flush(PATIENCE);
        return () -> {
            connection.close();
            server.close();
        };
    }

    @Override
    public Caller connect(Address to) throws Exception {
        Connection connection = connected(to);
        return new Caller() {
            @Override
            public byte[] request(byte[] message) throws InterruptedException {
                Message answer = connection.request("request", message, PATIENCE);
                if (answer == null) {
                    throw new IllegalStateException("no answer within " + PATIENCE);
                }
                return answer.getData();
            }

            @Override
            public void push(byte[] message) {
                connection.publish("push", message);
            }

            @Override
            public void close() throws InterruptedException {
                connection.close();
            }
        };
    }

    @Override
    public Publisher publisher(Address at) throws Exception {
        Daemon server = daemon(at);
        Connection connection = connected(at);
        return new Publisher() {
            @Override
            public void publish(byte[] message) {
                connection.publish("published", message);
            }

            @Override
            public void close() throws Exception {
                connection.close();
                server.close();
            }
        };
    }

    @Override
    public AutoCloseable subscribe(Address to, Address own, Consumer<byte[]> each) throws Exception {
        Connection connection = connected(to);
        connection.createDispatcher().subscribe("published", message -> each.accept(message.getData()));
        connection.flush(PATIENCE);
        return connection;
    }

    private static Daemon daemon(Address at) throws Exception {
        return new Daemon(at, directory -> List.of("nats-server", "-a", at.host(), "-p", Integer.toString(at.port())));
    }

    private static Connection connected(Address to) throws Exception {
        return io.nats.client.Nats.connect(Options.builder()
                .server("nats://" + to.host() + ":" + to.port())
                .connectionTimeout(PATIENCE)
                .build());
    }
}
