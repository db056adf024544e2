package vnet.middleware.transport;

import com.fasterxml.jackson.databind.JsonNode;
import java.net.URI;
import java.util.Base64;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import vnet.middleware.Middleware;
import ws.wamp.jawampa.WampClient;
import ws.wamp.jawampa.WampClientBuilder;
import ws.wamp.jawampa.WampRouter;
import ws.wamp.jawampa.WampRouterBuilder;
import ws.wamp.jawampa.transport.netty.NettyWampClientConnectorProvider;
import ws.wamp.jawampa.transport.netty.SimpleWampWebsocketListener;

/**
 * Carries bytes by WAMP (jawampa). Its router runs in the program of the listening side, whose client also uses it, over loopback.
 * Messages are JSON in WebSocket frames, with bytes as base64.
 */
public final class Wamp implements Middleware {
    private static final String REALM = "vnet";
    private static final int PATIENCE_S = 5;

    /** A router and its client. */
    private record Routed(WampRouter router, SimpleWampWebsocketListener listener, WampClient client) {
        static Routed at(Address at) throws Exception {
            WampRouter router = new WampRouterBuilder().addRealm(REALM).build();
            SimpleWampWebsocketListener listener = new SimpleWampWebsocketListener(router, url(at), null);
            listener.start();
            return new Routed(router, listener, opened(at));
        }

        void close() {
            client.close();
            listener.stop();
            router.close();
        }
    }

    @Override
    public AutoCloseable serve(Address at, Receiver receiver) throws Exception {
        Routed routed = Routed.at(at);
        CountDownLatch registered = new CountDownLatch(1);
        routed.client.registerProcedure("request").doOnSubscribe(registered::countDown).subscribe(request -> {
            try {
                request.reply(text(receiver.answer(bytes(request.arguments().get(0)))));
            } catch (Exception e) {
                e.printStackTrace();
            }
        });
        routed.client.makeSubscription("push").subscribe(data -> {
            try {
                receiver.take(bytes(data.arguments().get(0)));
            } catch (Exception e) {
                e.printStackTrace();
            }
        });
        registered.await(PATIENCE_S, TimeUnit.SECONDS);
        return routed::close;
    }

    @Override
    public Caller connect(Address to) throws Exception {
        WampClient client = opened(to);
        return new Caller() {
            @Override
            public byte[] request(byte[] message) {
                return bytes(client.call("request", JsonNode.class, text(message)).toBlocking().single());
            }

            @Override
            public void push(byte[] message) {
                client.publish("push", text(message)).toBlocking().single();
            }

            @Override
            public void close() {
                client.close();
            }
        };
    }

    @Override
    public Publisher publisher(Address at) throws Exception {
        Routed routed = Routed.at(at);
        return new Publisher() {
            @Override
            public void publish(byte[] message) {
                routed.client.publish("published", text(message)).toBlocking().single();
            }

            @Override
            public void close() {
                routed.close();
            }
        };
    }

    @Override
    public AutoCloseable subscribe(Address to, Address own, Consumer<byte[]> each) throws Exception {
        WampClient client = opened(to);
        client.makeSubscription("published").subscribe(data -> each.accept(bytes(data.arguments().get(0))));
        return client::close;
    }

    private static WampClient opened(Address to) throws Exception {
        WampClient client = new WampClientBuilder()
                .withConnectorProvider(new NettyWampClientConnectorProvider())
                .withUri(url(to).toString())
                .withRealm(REALM)
                .build();
        CountDownLatch connected = new CountDownLatch(1);
        client.statusChanged().subscribe(state -> {
            if (state instanceof WampClient.ConnectedState) {
                connected.countDown();
            }
        }, error -> { });
        client.open();
        if (!connected.await(PATIENCE_S, TimeUnit.SECONDS)) {
            client.close();
            throw new IllegalStateException(url(to) + ": no router answers");
        }
        return client;
    }

    private static URI url(Address at) {
        return URI.create("ws://" + at.host() + ":" + at.port() + "/wamp");
    }

    private static String text(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }

    private static byte[] bytes(JsonNode text) {
        return Base64.getDecoder().decode(text.asText());
    }
}
