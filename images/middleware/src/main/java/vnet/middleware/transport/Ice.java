package vnet.middleware.transport;

import com.zeroc.Ice.Blobject;
import com.zeroc.Ice.Communicator;
import com.zeroc.Ice.Current;
import com.zeroc.Ice.InputStream;
import com.zeroc.Ice.ObjectAdapter;
import com.zeroc.Ice.ObjectPrx;
import com.zeroc.Ice.OperationMode;
import com.zeroc.Ice.OutputStream;
import com.zeroc.Ice.UnknownException;
import com.zeroc.Ice.Util;
import vnet.middleware.Middleware;

/** Carries bytes by ZeroC Ice with dynamic invocation; a push is a oneway invocation. */
public final class Ice implements Middleware {
    private static final String NAME = "exchange";

    @Override
    public AutoCloseable serve(Address at, Receiver receiver) {
        Communicator communicator = Util.initialize();
        ObjectAdapter adapter =
                communicator.createObjectAdapterWithEndpoints(NAME, "tcp -h " + at.host() + " -p " + at.port());
        adapter.add((Blobject) (in, current) -> handle(communicator, in, current, receiver), Util.stringToIdentity(NAME));
        adapter.activate();
        return communicator;
    }

    private static com.zeroc.Ice.Object.Ice_invokeResult handle(
            Communicator communicator, byte[] in, Current current, Receiver receiver) {
        byte[] message = opened(communicator, in);
        byte[] answer = {};
        try {
            if (current.operation.equals("request")) {
                answer = receiver.answer(message);
            } else {
                receiver.take(message);
            }
        } catch (Exception e) {
            throw new UnknownException(e.toString(), e);
        }
        return new com.zeroc.Ice.Object.Ice_invokeResult(true, wrapped(communicator, answer));
    }

    @Override
    public Caller connect(Address to) {
        Communicator communicator = Util.initialize();
        ObjectPrx exchange = communicator.stringToProxy(NAME + ":tcp -h " + to.host() + " -p " + to.port());
        ObjectPrx oneway = exchange.ice_oneway();
        try {
            exchange.ice_getConnection();
        } catch (RuntimeException e) {
            communicator.close();
            throw e;
        }
        return new Caller() {
            @Override
            public byte[] request(byte[] message) {
                byte[] in = wrapped(communicator, message);
                return opened(communicator, exchange.ice_invoke("request", OperationMode.Normal, in).outParams);
            }

            @Override
            public void push(byte[] message) {
                oneway.ice_invoke("push", OperationMode.Normal, wrapped(communicator, message));
            }

            @Override
            public void close() {
                communicator.close();
            }
        };
    }

    private static byte[] wrapped(Communicator communicator, byte[] bytes) {
        OutputStream out = new OutputStream(communicator);
        out.startEncapsulation();
        out.writeByteSeq(bytes);
        out.endEncapsulation();
        return out.finished();
    }

    private static byte[] opened(Communicator communicator, byte[] encapsulation) {
        InputStream in = new InputStream(communicator, encapsulation);
        in.startEncapsulation();
        byte[] bytes = in.readByteSeq();
        in.endEncapsulation();
        return bytes;
    }
}
