package vnet.middleware.transport;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import vnet.middleware.Middleware;

/**
 * Carries bytes by AMQP 0-9-1 (RabbitMQ's client). RabbitMQ runs beside the listening side, whose client also uses it, over loopback.
 * Requests and pushes have a queue each, answers use direct reply-to, and publications use a fanout exchange. There are no
 * acknowledgements and no confirms.
 */
public final class Amqp implements Middleware {
    private static final int PATIENCE_MS = 2_000;
    private static final String ANSWERS = "amq.rabbitmq.reply-to";
    private static final String PUBLISHED = "published";
    private static final String SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"; // the one in sbin refuses users other than root and rabbitmq
    private static final int CLUSTER = 20_000; // offset to the port for other servers of a cluster, which it requires

    private interface Taken {
        void take(Delivery message) throws Exception;
    }

    @Override
    public AutoCloseable serve(Address at, Receiver receiver) throws Exception {
        Daemon server = daemon(at);
        Connection connection = connected(at);
        Channel requests = connection.createChannel();
        requests.queueDeclare("request", false, false, false, null);
        consumed(requests, "request", message ->
                requests.basicPublish("", message.getProperties().getReplyTo(), null, receiver.answer(message.getBody())));
        Channel pushes = connection.createChannel();
        pushes.queueDeclare("push", false, false, false, null);
        consumed(pushes, "push", message -> receiver.take(message.getBody()));
        return () -> {
            connection.close();
            server.close();
        };
    }

    @Override
    public Caller connect(Address to) throws Exception {
        Connection connection = connected(to);
        Channel channel = connection.createChannel();
        channel.queueDeclarePassive("push"); // fails until the other side has set up everything
        BlockingQueue<byte[]> answers = new LinkedBlockingQueue<>();
        consumed(channel, ANSWERS, message -> answers.add(message.getBody()));
        BasicProperties answered = new BasicProperties.Builder().replyTo(ANSWERS).build();
        return new Caller() {
            @Override
            public byte[] request(byte[] message) throws Exception {
                answers.clear(); // late answers
                channel.basicPublish("", "request", answered, message);
                byte[] answer = answers.poll(PATIENCE_MS, TimeUnit.MILLISECONDS);
                if (answer == null) {
                    throw new IllegalStateException("no answer within " + PATIENCE_MS + " ms");
                }
                return answer;
            }

            @Override
            public void push(byte[] message) throws Exception {
                channel.basicPublish("", "push", null, message);
            }

            @Override
            public void close() throws Exception {
                connection.close();
            }
        };
    }

    @Override
    public Publisher publisher(Address at) throws Exception {
        Daemon server = daemon(at);
        Connection connection = connected(at);
        Channel channel = connection.createChannel();
        channel.exchangeDeclare(PUBLISHED, "fanout");
        return new Publisher() {
            @Override
            public void publish(byte[] message) throws Exception {
                channel.basicPublish(PUBLISHED, "", null, message);
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
        Channel channel = connection.createChannel();
        channel.exchangeDeclare(PUBLISHED, "fanout");
        String queue = channel.queueDeclare().getQueue();
        channel.queueBind(queue, PUBLISHED, "");
        consumed(channel, queue, message -> each.accept(message.getBody()));
        return connection;
    }

    private static void consumed(Channel channel, String queue, Taken taken) throws Exception {
        channel.basicConsume(
                queue,
                true,
                (tag, message) -> {
                    try {
                        taken.take(message);
                    } catch (Exception e) {
                        e.printStackTrace();
                    }
                },
                tag -> {});
    }

    /** Starts RabbitMQ as orchestrator/software/rabbitmq/start.sh starts the broker of `broker: rabbitmq`; it writes only to its directory. */
    private static Daemon daemon(Address at) throws Exception {
        int cluster = at.port() + (at.port() < CLUSTER ? CLUSTER : -CLUSTER / 2);
        return new Daemon(at, directory -> {
            String settings = "[{rabbit, [{tcp_listeners, [{\"" + at.host() + "\", " + at.port() + "}]}, "
                    + "{tcp_listen_options, [{backlog, 1024}, {nodelay, true}]}, {loopback_users, []}]}].\n";
            Path file = Daemon.file(directory, "rabbitmq.config", settings);
            Path plugins = Daemon.file(directory, "plugins", "[].\n");
            String name = "vnet" + at.port() + "@localhost";
            return List.of(
                    "env",
                    "HOME=" + directory,
                    "RABBITMQ_CONF_ENV_FILE=" + directory.resolve("none"),
                    "RABBITMQ_NODENAME=" + name,
                    "RABBITMQ_CONFIG_FILE=" + file,
                    "RABBITMQ_ENABLED_PLUGINS_FILE=" + plugins,
                    "RABBITMQ_MNESIA_BASE=" + directory.resolve("data"),
                    "RABBITMQ_LOG_BASE=" + directory.resolve("logs"),
                    "RABBITMQ_PID_FILE=" + directory.resolve("pid"),
                    "RABBITMQ_LOGS=-",
                    "RABBITMQ_LOG=warning",
                    "RUNNING_UNDER_SYSTEMD=1", // the Erlang VM replaces the shell
                    "RABBITMQ_NODE_ONLY=1", // the node has its name from the start; otherwise it would start epmd
                    "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 1:1 +SDcpu 1:1 +SDio 1 +A 1 -sname " + name
                            + " -start_epmd false -erl_epmd_port " + cluster
                            + " -kernel inet_dist_use_interface {127,0,0,1} -s rabbit boot",
                    SERVER);
        });
    }

    private static Connection connected(Address to) throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setHost(to.host());
        factory.setPort(to.port());
        factory.setConnectionTimeout(PATIENCE_MS);
        factory.setAutomaticRecoveryEnabled(false);
        return factory.newConnection();
    }
}
