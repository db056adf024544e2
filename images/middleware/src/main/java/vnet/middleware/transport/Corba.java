package vnet.middleware.transport;

import java.util.Properties;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.CORBA.SystemException;
import org.omg.CORBA.UNKNOWN;
import org.omg.CORBA.portable.ApplicationException;
import org.omg.CORBA.portable.InputStream;
import org.omg.CORBA.portable.InvokeHandler;
import org.omg.CORBA.portable.ObjectImpl;
import org.omg.CORBA.portable.OutputStream;
import org.omg.CORBA.portable.RemarshalException;
import org.omg.CORBA.portable.ResponseHandler;
import org.omg.PortableServer.IdAssignmentPolicyValue;
import org.omg.PortableServer.LifespanPolicyValue;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;
import org.omg.PortableServer.Servant;
import vnet.middleware.Middleware;

/** Carries bytes by CORBA (JacORB): stub and skeleton as by an IDL compiler, for two operations on a sequence of octets; a push is oneway. */
public final class Corba implements Middleware {
    private static final String[] IDS = {"IDL:vnet/Exchange:1.0"};
    private static final String NAME = "exchange"; // of server, POA and object, so that a client needs no name service
    private static final int PATIENCE_MS = 2_000;

    /** The skeleton: calls the receiver for each invocation of an operation. */
    private static final class Served extends Servant implements InvokeHandler {
        private final Receiver receiver;

        Served(Receiver receiver) {
            this.receiver = receiver;
        }

        @Override
        public String[] _all_interfaces(POA poa, byte[] id) {
            return IDS;
        }

        @Override
        public OutputStream _invoke(String operation, InputStream in, ResponseHandler handler) throws SystemException {
            byte[] message = read(in);
            try {
                if (operation.equals("push")) {
                    receiver.take(message);
                    return handler.createReply();
                }
                byte[] answer = receiver.answer(message);
                OutputStream out = handler.createReply();
                write(out, answer);
                return out;
            } catch (Exception e) {
                throw new UNKNOWN(e.toString());
            }
        }
    }

    /** The stub: invokes an operation of the remote object. */
    private static final class Stub extends ObjectImpl {
        @Override
        public String[] _ids() {
            return IDS;
        }

        byte[] call(String operation, boolean answered, byte[] message) throws ApplicationException, RemarshalException {
            InputStream in = null;
            try {
                OutputStream out = _request(operation, answered);
                write(out, message);
                in = _invoke(out);
                return answered ? read(in) : null;
            } finally {
                _releaseReply(in);
            }
        }
    }

    @Override
    public AutoCloseable serve(Address at, Receiver receiver) throws Exception {
        Properties properties = properties();
        properties.setProperty("OAPort", Integer.toString(at.port()));
        properties.setProperty("OAIAddr", at.host());
        properties.setProperty("jacorb.implname", NAME);
        ORB orb = ORB.init(new String[0], properties);
        POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        Policy[] policies = {
            root.create_lifespan_policy(LifespanPolicyValue.PERSISTENT),
            root.create_id_assignment_policy(IdAssignmentPolicyValue.USER_ID),
        };
        POA poa = root.create_POA(NAME, root.the_POAManager(), policies);
        poa.activate_object_with_id(NAME.getBytes(), new Served(receiver));
        root.the_POAManager().activate();
        return () -> orb.shutdown(false);
    }

    @Override
    public Caller connect(Address to) {
        ORB orb = ORB.init(new String[0], properties());
        String where = "corbaloc:iiop:1.2@" + to.host() + ":" + to.port() + "/" + NAME + "/" + NAME + "/" + NAME;
        Stub stub = new Stub();
        stub._set_delegate(((ObjectImpl) orb.string_to_object(where))._get_delegate());
        if (stub._non_existent()) {
            throw new IllegalStateException(where + ": no such object");
        }
        return new Caller() {
            @Override
            public byte[] request(byte[] message) throws Exception {
                return stub.call("request", true, message);
            }

            @Override
            public void push(byte[] message) throws Exception {
                stub.call("push", false, message);
            }

            @Override
            public void close() {
                orb.shutdown(false);
            }
        };
    }

    private static Properties properties() {
        Properties properties = new Properties();
        properties.setProperty("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
        properties.setProperty("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
        properties.setProperty("jacorb.log.default.verbosity", "1");
        properties.setProperty("jacorb.connection.client.connect_timeout", Integer.toString(PATIENCE_MS));
        properties.setProperty("jacorb.retries", "0");
        properties.setProperty("jacorb.poa.queue_wait", "on"); // wait at a full queue instead of raising an exception
        return properties;
    }

    private static void write(OutputStream out, byte[] bytes) {
        out.write_long(bytes.length);
        out.write_octet_array(bytes, 0, bytes.length);
    }

    private static byte[] read(InputStream in) {
        byte[] bytes = new byte[in.read_long()];
        in.read_octet_array(bytes, 0, bytes.length);
        return bytes;
    }
}
