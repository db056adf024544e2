package vnet.middleware.transport;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.function.Consumer;
import org.jivesoftware.smack.ConnectionConfiguration.SecurityMode;
import org.jivesoftware.smack.filter.MessageWithBodiesFilter;
import org.jivesoftware.smack.iqrequest.AbstractIqRequestHandler;
import org.jivesoftware.smack.iqrequest.IQRequestHandler;
import org.jivesoftware.smack.packet.IQ;
import org.jivesoftware.smack.packet.IqData;
import org.jivesoftware.smack.packet.Message;
import org.jivesoftware.smack.packet.StanzaBuilder;
import org.jivesoftware.smack.packet.StanzaError;
import org.jivesoftware.smack.packet.XmlEnvironment;
import org.jivesoftware.smack.provider.IqProvider;
import org.jivesoftware.smack.provider.ProviderManager;
import org.jivesoftware.smack.tcp.XMPPTCPConnection;
import org.jivesoftware.smack.tcp.XMPPTCPConnectionConfiguration;
import org.jivesoftware.smack.xml.XmlPullParser;
import org.jivesoftware.smack.xml.XmlPullParserException;
import org.jivesoftware.smackx.pubsub.LeafNode;
import org.jivesoftware.smackx.pubsub.PayloadItem;
import org.jivesoftware.smackx.pubsub.PubSubManager;
import org.jivesoftware.smackx.pubsub.SimplePayload;
import org.jxmpp.jid.EntityFullJid;
import org.jxmpp.jid.impl.JidCreate;
import vnet.middleware.Middleware;

/**
 * Carries bytes by XMPP (Smack) without TLS, as base64: requests are IQ stanzas, pushes are messages, publications use XEP-0060.
 * prosody runs beside the listening side, whose client also uses it, over loopback.
 */
public final class Xmpp implements Middleware {
    private static final String SPACE = "urn:vnet:exchange";
    private static final String ELEMENT = "exchange";
    private static final String DOMAIN = "lab";
    private static final String USER = "node";
    private static final String PASSWORD = "exchange"; // for a server that lasts as long as the run, in its own network
    private static final String SERVER = "server";
    private static final String NODE = "published";
    private static final int PATIENCE_MS = 2_000;

    /** An IQ stanza that carries bytes as base64. */
    private static final class Exchange extends IQ {
        private final String text;

        Exchange(String text) {
            super(ELEMENT, SPACE);
            this.text = text;
        }

        @Override
        protected IQChildElementXmlStringBuilder getIQChildElementBuilder(IQChildElementXmlStringBuilder xml) {
            xml.rightAngleBracket();
            xml.append(text);
            return xml;
        }
    }

    private static final class Provider extends IqProvider<Exchange> {
        @Override
        public Exchange parse(XmlPullParser parser, int depth, IqData stanza, XmlEnvironment environment)
                throws IOException, XmlPullParserException {
            return new Exchange(parser.nextText());
        }
    }

    static {
        ProviderManager.addIQProvider(ELEMENT, SPACE, new Provider());
    }

    @Override
    public AutoCloseable serve(Address at, Receiver receiver) throws Exception {
        Daemon server = daemon(at);
        XMPPTCPConnection connection = connected(at, SERVER);
        connection.registerIQRequestHandler(
                new AbstractIqRequestHandler(ELEMENT, SPACE, IQ.Type.get, IQRequestHandler.Mode.async) {
                    @Override
                    public IQ handleIQRequest(IQ request) {
                        try {
                            Exchange answer = new Exchange(text(receiver.answer(bytes(((Exchange) request).text))));
                            answer.setType(IQ.Type.result);
                            answer.setTo(request.getFrom());
                            answer.setStanzaId(request.getStanzaId());
                            return answer;
                        } catch (Exception e) {
                            e.printStackTrace();
                            return IQ.createErrorResponse(request, StanzaError.Condition.internal_server_error);
                        }
                    }
                });
        connection.addSyncStanzaListener(
                stanza -> {
                    try {
                        receiver.take(bytes(((Message) stanza).getBody()));
                    } catch (Exception e) {
                        e.printStackTrace();
                    }
                },
                MessageWithBodiesFilter.INSTANCE);
        return () -> {
            connection.disconnect();
            server.close();
        };
    }

    @Override
    public Caller connect(Address to) throws Exception {
        XMPPTCPConnection connection = connected(to, null);
        EntityFullJid server = JidCreate.entityFullFrom(USER + "@" + DOMAIN + "/" + SERVER);
        return new Caller() {
            @Override
            public byte[] request(byte[] message) throws Exception {
                Exchange request = new Exchange(text(message));
                request.setType(IQ.Type.get);
                request.setTo(server);
                Exchange answer = connection.sendIqRequestAndWaitForResponse(request);
                return bytes(answer.text);
            }

            @Override
            public void push(byte[] message) throws Exception {
                connection.sendStanza(StanzaBuilder.buildMessage()
                        .to(server)
                        .ofType(Message.Type.normal)
                        .setBody(text(message))
                        .build());
            }

            @Override
            public void close() {
                connection.disconnect();
            }
        };
    }

    @Override
    public Publisher publisher(Address at) throws Exception {
        Daemon server = daemon(at);
        XMPPTCPConnection connection = connected(at, SERVER);
        LeafNode node = pubsub(connection).getOrCreateLeafNode(NODE);
        return new Publisher() {
            @Override
            public void publish(byte[] message) throws Exception {
                String payload = "<" + ELEMENT + " xmlns='" + SPACE + "'>" + text(message) + "</" + ELEMENT + ">";
                node.publish(new PayloadItem<>(new SimplePayload(payload)));
            }

            @Override
            public void close() throws Exception {
                connection.disconnect();
                server.close();
            }
        };
    }

    @Override
    public AutoCloseable subscribe(Address to, Address own, Consumer<byte[]> each) throws Exception {
        XMPPTCPConnection connection = connected(to, null);
        LeafNode node = pubsub(connection).getLeafNode(NODE);
        node.addItemEventListener(event -> {
            for (Object item : event.getItems()) {
                String xml = ((PayloadItem<?>) item).getPayload().toXML(XmlEnvironment.EMPTY).toString();
                each.accept(bytes(xml.substring(xml.indexOf('>') + 1, xml.lastIndexOf('<'))));
            }
        });
        node.subscribe(connection.getUser());
        return connection::disconnect;
    }

    private static PubSubManager pubsub(XMPPTCPConnection connection) throws Exception {
        return PubSubManager.getInstanceFor(connection, JidCreate.domainBareFrom("pubsub." + DOMAIN));
    }

    private static XMPPTCPConnection connected(Address to, String resource) throws Exception {
        XMPPTCPConnectionConfiguration.Builder config = XMPPTCPConnectionConfiguration.builder()
                .setXmppDomain(DOMAIN)
                .setHost(to.host())
                .setPort(to.port())
                .setSecurityMode(SecurityMode.disabled)
                .setConnectTimeout(PATIENCE_MS)
                .setUsernameAndPassword(USER, PASSWORD);
        if (resource != null) {
            config.setResource(resource);
        }
        XMPPTCPConnection connection = new XMPPTCPConnection(config.build());
        connection.setReplyTimeout(PATIENCE_MS);
        connection.connect().login();
        return connection;
    }

    private static Daemon daemon(Address at) throws Exception {
        return new Daemon(at, directory -> {
            Daemon.file(directory, "data/" + DOMAIN + "/accounts/" + USER + ".dat", "return { [\"password\"] = \"" + PASSWORD + "\"; };\n");
            Path file = Daemon.file(directory, "prosody.cfg.lua", String.join("\n",
                    "run_as_root = true",
                    "data_path = \"" + directory + "/data\"",
                    "pidfile = \"" + directory + "/pid\"",
                    "log = { warn = \"*console\" }",
                    "interfaces = { \"" + at.host() + "\" }",
                    "c2s_ports = { " + at.port() + " }",
                    "modules_enabled = { \"roster\", \"saslauth\", \"disco\" }",
                    "modules_disabled = { \"s2s\" }",
                    "authentication = \"internal_plain\"",
                    "c2s_require_encryption = false",
                    "allow_unencrypted_plain_auth = true",
                    "VirtualHost \"" + DOMAIN + "\"",
                    "Component \"pubsub." + DOMAIN + "\" \"pubsub\"",
                    "  admins = { \"" + USER + "@" + DOMAIN + "\" }", // only admins may create a node
                    ""));
            return List.of("prosody", "-F", "--config", file.toString());
        });
    }

    private static String text(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }

    private static byte[] bytes(String text) {
        return Base64.getDecoder().decode(text);
    }
}
