package vnet.middleware.transport;

import jakarta.jws.Oneway;
import jakarta.jws.WebMethod;
import jakarta.jws.WebService;
import jakarta.xml.ws.Endpoint;
import jakarta.xml.ws.Service;
import jakarta.xml.ws.WebServiceException;
import java.net.URI;
import javax.xml.namespace.QName;
import vnet.middleware.Middleware;

/** Carries bytes by Web Services (SOAP over HTTP, JAX-WS), as base64Binary; a push is a oneway operation, which HTTP acknowledges. */
public final class WebServices implements Middleware {
    private static final String SPACE = "urn:vnet:exchange";

    /** The operations of the service (its port type). */
    @WebService(targetNamespace = SPACE, name = "Exchange")
    public interface Exchange {
        @WebMethod
        byte[] request(byte[] message);

        @WebMethod
        @Oneway
        void push(byte[] message);
    }

    /** The service: calls the receiver for each operation. */
    @WebService(
            targetNamespace = SPACE,
            serviceName = "ExchangeService",
            portName = "ExchangePort",
            endpointInterface = "vnet.middleware.transport.WebServices$Exchange")
    public static final class Served implements Exchange {
        private final Receiver receiver;

        public Served(Receiver receiver) {
            this.receiver = receiver;
        }

        @Override
        public byte[] request(byte[] message) {
            try {
                return receiver.answer(message);
            } catch (Exception e) {
                throw new WebServiceException(e);
            }
        }

        @Override
        public void push(byte[] message) {
            try {
                receiver.take(message);
            } catch (Exception e) {
                throw new WebServiceException(e);
            }
        }
    }

    @Override
    public AutoCloseable serve(Address at, Receiver receiver) {
        Endpoint endpoint = Endpoint.publish(url(at), new Served(receiver));
        return endpoint::stop;
    }

    @Override
    public Caller connect(Address to) throws Exception {
        Service service = Service.create(new URI(url(to) + "?wsdl").toURL(), new QName(SPACE, "ExchangeService"));
        Exchange exchange = service.getPort(new QName(SPACE, "ExchangePort"), Exchange.class);
        return new Caller() {
            @Override
            public byte[] request(byte[] message) {
                return exchange.request(message);
            }

            @Override
            public void push(byte[] message) {
                exchange.push(message);
            }

            @Override
            public void close() {}
        };
    }

    private static String url(Address at) {
        return "http://" + at.host() + ":" + at.port() + "/exchange";
    }
}
