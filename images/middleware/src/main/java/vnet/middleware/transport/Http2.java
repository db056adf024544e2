package vnet.middleware.transport;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.time.Duration;
import org.eclipse.jetty.http2.server.HTTP2CServerConnectionFactory;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import vnet.middleware.Middleware;

/** Carries bytes by HTTP/2 without TLS: POSTs from the JDK's client to Jetty; a push is a POST with an empty answer. */
public final class Http2 implements Middleware {
    private static final Duration PATIENCE = Duration.ofSeconds(2);
    private static final int OK = 200;
    private static final int ERROR_STATUS = 500;

    @Override
    public AutoCloseable serve(Address at, Receiver receiver) throws Exception {
        Server server = new Server(new QueuedThreadPool(16, 4));
        HttpConfiguration config = new HttpConfiguration();
        ServerConnector connector = new ServerConnector(
                server, 1, 1, new HttpConnectionFactory(config), new HTTP2CServerConnectionFactory(config));
        connector.setHost(at.host());
        connector.setPort(at.port());
        server.addConnector(connector);
        server.setHandler(new Handler.Abstract() {
            @Override
            public boolean handle(Request request, Response response, Callback callback) throws Exception {
                byte[] message = bytes(Content.Source.asByteBuffer(request));
                byte[] answer = {};
                try {
                    switch (request.getHttpURI().getPath()) {
                        case "/request" -> answer = receiver.answer(message);
                        case "/push" -> receiver.take(message);
                        default -> { } // the first request, which upgrades the connection to HTTP/2
                    }
                } catch (Exception e) {
                    response.setStatus(ERROR_STATUS);
                }
                response.write(true, ByteBuffer.wrap(answer), callback);
                return true;
            }
        });
        server.start();
        return server::stop;
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    @Override
    public Caller connect(Address to) throws Exception {
        HttpClient client = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_2)
                .connectTimeout(PATIENCE)
                .build();
        String base = "http://" + to.host() + ":" + to.port();
        HttpResponse<byte[]> first = client.send(
                HttpRequest.newBuilder(URI.create(base + "/")).timeout(PATIENCE).build(), BodyHandlers.ofByteArray());
        if (first.version() != HttpClient.Version.HTTP_2) {
            throw new IllegalStateException(base + ": does not speak HTTP/2");
        }
        return new Caller() {
            @Override
            public byte[] request(byte[] message) throws IOException, InterruptedException {
                return post("/request", message);
            }

            @Override
            public void push(byte[] message) throws IOException, InterruptedException {
                post("/push", message);
            }

            private byte[] post(String path, byte[] message) throws IOException, InterruptedException {
                HttpRequest request = HttpRequest.newBuilder(URI.create(base + path))
                        .POST(BodyPublishers.ofByteArray(message))
                        .build();
                HttpResponse<byte[]> response = client.send(request, BodyHandlers.ofByteArray());
                if (response.statusCode() != OK) {
                    throw new IOException(path + ": status " + response.statusCode());
                }
                return response.body();
            }

            @Override
            public void close() {}
        };
    }
}
