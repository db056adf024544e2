package vnet.middleware.transport;

import java.net.InetAddress;
import java.net.URI;
import org.apache.xmlrpc.XmlRpcException;
import org.apache.xmlrpc.XmlRpcRequest;
import org.apache.xmlrpc.client.XmlRpcClient;
import org.apache.xmlrpc.client.XmlRpcClientConfigImpl;
import org.apache.xmlrpc.server.XmlRpcServerConfigImpl;
import org.apache.xmlrpc.webserver.WebServer;
import vnet.middleware.Middleware;

/** Carries bytes by XML-RPC (Apache), as base64; a push is a call whose answer is ignored. */
public final class XmlRpc implements Middleware {
    private static final int CONNECT_MS = 2_000;

    @Override
    public AutoCloseable serve(Address at, Receiver receiver) throws Exception {
        WebServer server = new WebServer(at.port(), InetAddress.getByName(at.host()));
        server.getXmlRpcServer().setHandlerMapping(method -> request -> handle(method, request, receiver));
        XmlRpcServerConfigImpl config = (XmlRpcServerConfigImpl) server.getXmlRpcServer().getConfig();
        config.setEnabledForExtensions(true);
        config.setKeepAliveEnabled(true);
        config.setContentLengthOptional(false);
        server.start();
        return server::shutdown;
    }

    private static Object handle(String method, XmlRpcRequest request, Receiver receiver) throws XmlRpcException {
        byte[] message = (byte[]) request.getParameter(0);
        try {
            if (method.equals("request")) {
                return receiver.answer(message);
            }
            receiver.take(message);
            return Boolean.TRUE;
        } catch (Exception e) {
            throw new XmlRpcException(method, e);
        }
    }

    @Override
    public Caller connect(Address to) throws Exception {
        XmlRpcClientConfigImpl config = new XmlRpcClientConfigImpl();
        config.setServerURL(new URI("http://" + to.host() + ":" + to.port() + "/").toURL());
        config.setEnabledForExtensions(true);
        config.setConnectionTimeout(CONNECT_MS);
        XmlRpcClient client = new XmlRpcClient();
        client.setConfig(config);
        return new Caller() {
            @Override
            public byte[] request(byte[] message) throws XmlRpcException {
                return (byte[]) client.execute("request", new Object[] {message});
            }

            @Override
            public void push(byte[] message) throws XmlRpcException {
                client.execute("push", new Object[] {message});
            }

            @Override
            public void close() {}
        };
    }
}
