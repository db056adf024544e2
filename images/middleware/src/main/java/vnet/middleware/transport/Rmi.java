package vnet.middleware.transport;

import java.rmi.Remote;
import java.rmi.RemoteException;
import java.rmi.registry.LocateRegistry;
import java.rmi.registry.Registry;
import java.rmi.server.UnicastRemoteObject;
import vnet.middleware.Middleware;

/** Carries bytes by Java's Remote Method Invocation; a push is a call without a result. */
public final class Rmi implements Middleware {
    private static final String NAME = "exchange";

    /** The interface of the remote object. */
    public interface Exchange extends Remote {
        byte[] request(byte[] message) throws RemoteException;

        void push(byte[] message) throws RemoteException;
    }

    private record Served(Receiver receiver) implements Exchange {
        @Override
        public byte[] request(byte[] message) throws RemoteException {
            try {
                return receiver.answer(message);
            } catch (Exception e) {
                throw new RemoteException("request", e);
            }
        }

        @Override
        public void push(byte[] message) throws RemoteException {
            try {
                receiver.take(message);
            } catch (Exception e) {
                throw new RemoteException("push", e);
            }
        }
    }

    @Override
    public AutoCloseable serve(Address at, Receiver receiver) throws Exception {
        System.setProperty("java.rmi.server.hostname", at.host()); // the host in stubs
        Registry registry = LocateRegistry.createRegistry(at.port());
        Served served = new Served(receiver);
        registry.rebind(NAME, UnicastRemoteObject.exportObject(served, at.port()));
        return () -> {
            UnicastRemoteObject.unexportObject(served, true);
            UnicastRemoteObject.unexportObject(registry, true);
        };
    }

    @Override
    public Caller connect(Address to) throws Exception {
        Exchange exchange = (Exchange) LocateRegistry.getRegistry(to.host(), to.port()).lookup(NAME);
        return new Caller() {
            @Override
            public byte[] request(byte[] message) throws RemoteException {
                return exchange.request(message);
            }

            @Override
            public void push(byte[] message) throws RemoteException {
                exchange.push(message);
            }

            @Override
            public void close() {}
        };
    }
}
