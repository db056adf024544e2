package vnet.middleware.transport;

import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import vnet.middleware.Middleware;

/** Carries bytes by gRPC: requests as unary calls, pushes as a client stream, subscriptions as a server stream. Messages are bytes, not Protocol Buffers. */
public final class Grpc implements Middleware {
    private static final String NAME = "exchange";

    private static final MethodDescriptor.Marshaller<byte[]> BYTES = new MethodDescriptor.Marshaller<>() {
        @Override
        public InputStream stream(byte[] value) {
            return new ByteArrayInputStream(value);
        }

        @Override
        public byte[] parse(InputStream stream) {
            try {
                return stream.readAllBytes();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    };
    private static final MethodDescriptor<byte[], byte[]> REQUEST = method("request", MethodType.UNARY);
    private static final MethodDescriptor<byte[], byte[]> PUSH = method("push", MethodType.CLIENT_STREAMING);
    private static final MethodDescriptor<byte[], byte[]> SUBSCRIBE = method("subscribe", MethodType.SERVER_STREAMING);

    private static MethodDescriptor<byte[], byte[]> method(String name, MethodType type) {
        return MethodDescriptor.newBuilder(BYTES, BYTES)
                .setType(type)
                .setFullMethodName(MethodDescriptor.generateFullMethodName(NAME, name))
                .build();
    }

    @Override
    public AutoCloseable serve(Address at, Receiver receiver) throws IOException {
        ServerServiceDefinition service = ServerServiceDefinition.builder(NAME)
                .addMethod(REQUEST, ServerCalls.<byte[], byte[]>asyncUnaryCall((message, answers) -> {
                    try {
                        answers.onNext(receiver.answer(message));
                        answers.onCompleted();
                    } catch (Exception e) {
                        answers.onError(e);
                    }
                }))
                .addMethod(PUSH, ServerCalls.<byte[], byte[]>asyncClientStreamingCall(answers -> new Taking(receiver, answers)))
                .build();
        return started(at, service)::shutdownNow;
    }

    private record Taking(Receiver receiver, StreamObserver<byte[]> answers) implements StreamObserver<byte[]> {
        @Override
        public void onNext(byte[] message) {
            try {
                receiver.take(message);
            } catch (Exception e) {
                answers.onError(e);
            }
        }

        @Override
        public void onError(Throwable error) {}

        @Override
        public void onCompleted() {
            answers.onNext(new byte[0]);
            answers.onCompleted();
        }
    }

    @Override
    public Caller connect(Address to) {
        ManagedChannel channel = channel(to);
        try {
            ClientCalls.blockingUnaryCall(channel, method("none", MethodType.UNARY), CallOptions.DEFAULT, new byte[0]);
        } catch (StatusRuntimeException e) {
            if (e.getStatus().getCode() != io.grpc.Status.Code.UNIMPLEMENTED) {
                channel.shutdownNow();
                throw e;
            }
        }
        StreamObserver<byte[]> pushed =
                ClientCalls.asyncClientStreamingCall(channel.newCall(PUSH, CallOptions.DEFAULT), new Each(message -> {}));
        return new Caller() {
            @Override
            public byte[] request(byte[] message) {
                return ClientCalls.blockingUnaryCall(channel, REQUEST, CallOptions.DEFAULT, message);
            }

            @Override
            public void push(byte[] message) throws InterruptedException {
                while (!((io.grpc.stub.ClientCallStreamObserver<byte[]>) pushed).isReady()) {
                    Thread.sleep(0, 200_000); // the stream's window is full; gRPC itself would queue without limit
                }
                pushed.onNext(message);
            }

            @Override
            public void close() {
                channel.shutdownNow();
            }
        };
    }

    @Override
    public Publisher publisher(Address at) throws IOException {
        Set<ServerCallStreamObserver<byte[]>> subscribers = ConcurrentHashMap.newKeySet();
        ServerServiceDefinition service = ServerServiceDefinition.builder(NAME)
                .addMethod(SUBSCRIBE, ServerCalls.<byte[], byte[]>asyncServerStreamingCall((none, messages) -> {
                    ServerCallStreamObserver<byte[]> subscriber = (ServerCallStreamObserver<byte[]>) messages;
                    subscriber.setOnCancelHandler(() -> subscribers.remove(subscriber));
                    subscribers.add(subscriber);
                }))
                .build();
        Server server = started(at, service);
        return new Publisher() {
            @Override
            public void publish(byte[] message) throws InterruptedException {
                for (ServerCallStreamObserver<byte[]> subscriber : subscribers) {
                    while (!subscriber.isReady() && !subscriber.isCancelled()) {
                        Thread.sleep(0, 200_000);
                    }
                    subscriber.onNext(message);
                }
            }

            @Override
            public void close() {
                server.shutdownNow();
            }
        };
    }

    @Override
    public AutoCloseable subscribe(Address to, Address own, Consumer<byte[]> each) {
        ManagedChannel channel = channel(to);
        ClientCalls.asyncServerStreamingCall(
                channel.newCall(SUBSCRIBE, CallOptions.DEFAULT.withWaitForReady()), new byte[0], new Each(each));
        return channel::shutdownNow;
    }

    private record Each(Consumer<byte[]> each) implements StreamObserver<byte[]> {
        @Override
        public void onNext(byte[] message) {
            each.accept(message);
        }

        @Override
        public void onError(Throwable error) {}

        @Override
        public void onCompleted() {}
    }

    private static Server started(Address at, ServerServiceDefinition service) throws IOException {
        return NettyServerBuilder.forAddress(new InetSocketAddress(at.host(), at.port()))
                .addService(service)
                .build()
                .start();
    }

    private static ManagedChannel channel(Address to) {
        return NettyChannelBuilder.forAddress(to.host(), to.port()).usePlaintext().build();
    }
}
