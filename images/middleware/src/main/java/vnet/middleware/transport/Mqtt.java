package vnet.middleware.transport;

import com.hivemq.client.mqtt.MqttClient;
import com.hivemq.client.mqtt.datatypes.MqttQos;
import com.hivemq.client.mqtt.mqtt5.Mqtt5AsyncClient;
import com.hivemq.client.mqtt.mqtt5.Mqtt5BlockingClient;
import java.nio.file.Path;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import vnet.middleware.Middleware;

/**
 * Carries bytes by MQTT 5 (HiveMQ's client, QoS 0). mosquitto runs beside the listening side, whose client also uses it, over
 * loopback. A request carries the topic for its answer.
 */
public final class Mqtt implements Middleware {
    private static final int PATIENCE_MS = 2_000;

    private interface Taken {
        void take(byte[] message, com.hivemq.client.mqtt.mqtt5.message.publish.Mqtt5Publish whole) throws Exception;
    }

    @Override
    public AutoCloseable serve(Address at, Receiver receiver) throws Exception {
        Daemon server = daemon(at);
        Mqtt5AsyncClient client = connected(at);
        subscribed(client, "push", (message, whole) -> receiver.take(message));
        subscribed(client, "request", (message, whole) -> client.publishWith()
                .topic(whole.getResponseTopic().orElseThrow())
                .payload(receiver.answer(message))
                .send());
        return closing(client, server);
    }

    @Override
    public Caller connect(Address to) throws Exception {
        Mqtt5AsyncClient client = connected(to);
        BlockingQueue<byte[]> answers = new LinkedBlockingQueue<>();
        String answered = "answers/" + UUID.randomUUID();
        subscribed(client, answered, (message, whole) -> answers.add(message));
        return new Caller() {
            @Override
            public byte[] request(byte[] message) throws InterruptedException {
                answers.clear(); // late answers
                client.publishWith().topic("request").responseTopic(answered).payload(message).send();
                byte[] answer = answers.poll(PATIENCE_MS, TimeUnit.MILLISECONDS);
                if (answer == null) {
                    throw new IllegalStateException("no answer within " + PATIENCE_MS + " ms");
                }
                return answer;
            }

            @Override
            public void push(byte[] message) {
                client.publishWith().topic("push").payload(message).send().join();
            }

            @Override
            public void close() {
                client.disconnect().join();
            }
        };
    }

    @Override
    public Publisher publisher(Address at) throws Exception {
        Daemon server = daemon(at);
        Mqtt5AsyncClient client = connected(at);
        AutoCloseable closing = closing(client, server);
        return new Publisher() {
            @Override
            public void publish(byte[] message) {
                client.publishWith().topic("published").payload(message).send().join();
            }

            @Override
            public void close() throws Exception {
                closing.close();
            }
        };
    }

    @Override
    public AutoCloseable subscribe(Address to, Address own, Consumer<byte[]> each) throws Exception {
        Mqtt5AsyncClient client = connected(to);
        subscribed(client, "published", (message, whole) -> each.accept(message));
        return () -> client.disconnect().join();
    }

    private static AutoCloseable closing(Mqtt5AsyncClient client, Daemon server) {
        return () -> {
            client.disconnect().join();
            server.close();
        };
    }

    private static void subscribed(Mqtt5AsyncClient client, String topic, Taken taken) {
        client.subscribeWith()
                .topicFilter(topic)
                .qos(MqttQos.AT_MOST_ONCE)
                .callback(whole -> {
                    try {
                        taken.take(whole.getPayloadAsBytes(), whole);
                    } catch (Exception e) {
                        e.printStackTrace();
                    }
                })
                .send()
                .join();
    }

    private static Daemon daemon(Address at) throws Exception {
        String settings = "listener " + at.port() + " " + at.host() + "\nallow_anonymous true\nset_tcp_nodelay true\nuser root\n"
                + "max_queued_messages 10000\n";
        return new Daemon(at, directory -> {
            Path file = Daemon.file(directory, "mosquitto.conf", settings);
            return List.of("mosquitto", "-c", file.toString());
        });
    }

    private static Mqtt5AsyncClient connected(Address to) {
        Mqtt5BlockingClient client = MqttClient.builder()
                .useMqttVersion5()
                .serverHost(to.host())
                .serverPort(to.port())
                .buildBlocking();
        client.connect();
        return client.toAsync();
    }
}
