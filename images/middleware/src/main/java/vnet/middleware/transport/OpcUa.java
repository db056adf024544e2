package vnet.middleware.transport;

import static org.eclipse.milo.opcua.stack.core.types.builtin.unsigned.Unsigned.uint;

import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.eclipse.milo.opcua.sdk.client.OpcUaClient;
import org.eclipse.milo.opcua.sdk.client.api.subscriptions.UaSubscription;
import org.eclipse.milo.opcua.sdk.core.AccessLevel;
import org.eclipse.milo.opcua.sdk.core.Reference;
import org.eclipse.milo.opcua.sdk.server.OpcUaServer;
import org.eclipse.milo.opcua.sdk.server.api.DataItem;
import org.eclipse.milo.opcua.sdk.server.api.ManagedNamespaceWithLifecycle;
import org.eclipse.milo.opcua.sdk.server.api.MonitoredItem;
import org.eclipse.milo.opcua.sdk.server.api.config.OpcUaServerConfig;
import org.eclipse.milo.opcua.sdk.server.api.methods.AbstractMethodInvocationHandler;
import org.eclipse.milo.opcua.sdk.server.identity.AnonymousIdentityValidator;
import org.eclipse.milo.opcua.sdk.server.nodes.UaFolderNode;
import org.eclipse.milo.opcua.sdk.server.nodes.UaMethodNode;
import org.eclipse.milo.opcua.sdk.server.nodes.UaVariableNode;
import org.eclipse.milo.opcua.stack.core.AttributeId;
import org.eclipse.milo.opcua.stack.core.Identifiers;
import org.eclipse.milo.opcua.stack.core.UaException;
import org.eclipse.milo.opcua.stack.core.security.DefaultCertificateManager;
import org.eclipse.milo.opcua.stack.core.security.SecurityPolicy;
import org.eclipse.milo.opcua.stack.core.transport.TransportProfile;
import org.eclipse.milo.opcua.stack.core.types.builtin.ByteString;
import org.eclipse.milo.opcua.stack.core.types.builtin.DataValue;
import org.eclipse.milo.opcua.stack.core.types.builtin.LocalizedText;
import org.eclipse.milo.opcua.stack.core.types.builtin.NodeId;
import org.eclipse.milo.opcua.stack.core.types.builtin.QualifiedName;
import org.eclipse.milo.opcua.stack.core.types.builtin.Variant;
import org.eclipse.milo.opcua.stack.core.types.enumerated.MessageSecurityMode;
import org.eclipse.milo.opcua.stack.core.types.enumerated.MonitoringMode;
import org.eclipse.milo.opcua.stack.core.types.enumerated.TimestampsToReturn;
import org.eclipse.milo.opcua.stack.core.types.structured.Argument;
import org.eclipse.milo.opcua.stack.core.types.structured.CallMethodRequest;
import org.eclipse.milo.opcua.stack.core.types.structured.CallMethodResult;
import org.eclipse.milo.opcua.stack.core.types.structured.MonitoredItemCreateRequest;
import org.eclipse.milo.opcua.stack.core.types.structured.MonitoringParameters;
import org.eclipse.milo.opcua.stack.core.types.structured.ReadValueId;
import org.eclipse.milo.opcua.stack.server.EndpointConfiguration;
import vnet.middleware.Middleware;

/**
 * Carries bytes by OPC UA (Eclipse Milo), binary over TCP, without security: a request is a method call, a push is a write to a
 * variable, and a publication is a reported value of a variable.
 */
public final class OpcUa implements Middleware {
    private static final String SPACE = "urn:vnet:exchange";
    private static final int PATIENCE_MS = 2_000;
    private static final double PUBLISHED_EVERY_MS = 10; // the server's minimum
    private static final int QUEUED = 10_000;

    /** The server's nodes: a folder with the method and the variables. */
    private static final class Space extends ManagedNamespaceWithLifecycle {
        private final Receiver receiver;
        private final List<DataItem> subscribed = new CopyOnWriteArrayList<>();

        Space(OpcUaServer server, Receiver receiver) {
            super(server, SPACE);
            this.receiver = receiver;
            getLifecycleManager().addStartupTask(this::nodes);
        }

        private void nodes() {
            UaFolderNode folder = new UaFolderNode(getNodeContext(), newNodeId("exchange"), newQualifiedName("exchange"), LocalizedText.english("exchange"));
            getNodeManager().addNode(folder);
            folder.addReference(new Reference(folder.getNodeId(), Identifiers.Organizes, Identifiers.ObjectsFolder.expanded(), false));
            folder.addComponent(method());
            UaVariableNode push = variable("push");
            push.addAttributeObserver((node, attribute, value) -> {
                if (attribute == AttributeId.Value) {
                    taken((DataValue) value);
                }
            });
            folder.addOrganizes(push);
            folder.addOrganizes(variable("published"));
        }

        private void taken(DataValue value) {
            try {
                receiver.take(bytes(value.getValue()));
            } catch (Exception e) {
                e.printStackTrace();
            }
        }

        private UaMethodNode method() {
            UaMethodNode method = UaMethodNode.builder(getNodeContext())
                    .setNodeId(newNodeId("request"))
                    .setBrowseName(newQualifiedName("request"))
                    .setDisplayName(LocalizedText.english("request"))
                    .build();
            Argument[] message = {new Argument("message", Identifiers.ByteString, -1, null, LocalizedText.NULL_VALUE)};
            method.setInputArguments(message);
            method.setOutputArguments(message);
            method.setInvocationHandler(new AbstractMethodInvocationHandler(method) {
                @Override
                public Argument[] getInputArguments() {
                    return message;
                }

                @Override
                public Argument[] getOutputArguments() {
                    return message;
                }

                @Override
                protected Variant[] invoke(InvocationContext context, Variant[] in) throws UaException {
                    try {
                        return new Variant[] {variant(receiver.answer(bytes(in[0])))};
                    } catch (Exception e) {
                        throw new UaException(e);
                    }
                }
            });
            getNodeManager().addNode(method);
            return method;
        }

        private UaVariableNode variable(String name) {
            UaVariableNode variable = new UaVariableNode.UaVariableNodeBuilder(getNodeContext())
                    .setNodeId(newNodeId(name))
                    .setBrowseName(newQualifiedName(name))
                    .setDisplayName(LocalizedText.english(name))
                    .setDataType(Identifiers.ByteString)
                    .setTypeDefinition(Identifiers.BaseDataVariableType)
                    .setAccessLevel(AccessLevel.READ_WRITE)
                    .setUserAccessLevel(AccessLevel.READ_WRITE)
                    .build();
            variable.setValue(new DataValue(variant(new byte[0])));
            getNodeManager().addNode(variable);
            return variable;
        }

        void publish(byte[] message) {
            DataValue value = new DataValue(variant(message));
            for (DataItem item : subscribed) {
                item.setValue(value);
            }
        }

        @Override
        public void onDataItemsCreated(List<DataItem> items) {
            subscribed.addAll(items);
        }

        @Override
        public void onDataItemsModified(List<DataItem> items) {}

        @Override
        public void onDataItemsDeleted(List<DataItem> items) {
            subscribed.removeAll(items);
        }

        @Override
        public void onMonitoringModeChanged(List<MonitoredItem> items) {}
    }

    /** A server with its nodes. */
    private record Served(OpcUaServer server, Space space) {
        static Served at(Address at, Receiver receiver) throws Exception {
            EndpointConfiguration endpoint = EndpointConfiguration.newBuilder()
                    .setBindAddress(at.host())
                    .setHostname(at.host())
                    .setBindPort(at.port())
                    .setPath("/exchange")
                    .setTransportProfile(TransportProfile.TCP_UASC_UABINARY)
                    .setSecurityPolicy(SecurityPolicy.None)
                    .setSecurityMode(MessageSecurityMode.None)
                    .addTokenPolicies(OpcUaServerConfig.USER_TOKEN_POLICY_ANONYMOUS)
                    .build();
            OpcUaServer server = new OpcUaServer(OpcUaServerConfig.builder()
                    .setApplicationName(LocalizedText.english("exchange"))
                    .setApplicationUri(SPACE)
                    .setProductUri(SPACE)
                    .setEndpoints(Set.of(endpoint))
                    .setCertificateManager(new DefaultCertificateManager())
                    .setIdentityValidator(AnonymousIdentityValidator.INSTANCE)
                    .build());
            Space space = new Space(server, receiver);
            space.startup();
            server.startup().get();
            return new Served(server, space);
        }

        void close() throws Exception {
            server.shutdown().get();
            space.shutdown();
        }
    }

    @Override
    public AutoCloseable serve(Address at, Receiver receiver) throws Exception {
        Served served = Served.at(at, receiver);
        return served::close;
    }

    @Override
    public Caller connect(Address to) throws Exception {
        OpcUaClient client = connected(to);
        NodeId folder = node(client, "exchange");
        NodeId request = node(client, "request");
        NodeId push = node(client, "push");
        return new Caller() {
            @Override
            public byte[] request(byte[] message) throws Exception {
                CallMethodResult result = client.call(new CallMethodRequest(folder, request, new Variant[] {variant(message)})).get();
                if (!result.getStatusCode().isGood()) {
                    throw new UaException(result.getStatusCode());
                }
                return bytes(result.getOutputArguments()[0]);
            }

            @Override
            public void push(byte[] message) throws Exception {
                var status = client.writeValue(push, DataValue.valueOnly(variant(message))).get();
                if (!status.isGood()) {
                    throw new UaException(status);
                }
            }

            @Override
            public void close() throws Exception {
                client.disconnect().get();
            }
        };
    }

    @Override
    public Publisher publisher(Address at) throws Exception {
        Served served = Served.at(at, null);
        return new Publisher() {
            @Override
            public void publish(byte[] message) {
                served.space.publish(message);
            }

            @Override
            public void close() throws Exception {
                served.close();
            }
        };
    }

    @Override
    public AutoCloseable subscribe(Address to, Address own, Consumer<byte[]> each) throws Exception {
        OpcUaClient client = connected(to);
        UaSubscription subscription = client.getSubscriptionManager().createSubscription(PUBLISHED_EVERY_MS).get();
        ReadValueId what = new ReadValueId(node(client, "published"), AttributeId.Value.uid(), null, QualifiedName.NULL_VALUE);
        MonitoringParameters how = new MonitoringParameters(subscription.nextClientHandle(), 0.0, null, uint(QUEUED), true);
        subscription
                .createMonitoredItems(
                        TimestampsToReturn.Neither,
                        List.of(new MonitoredItemCreateRequest(what, MonitoringMode.Reporting, how)),
                        (item, number) -> item.setValueConsumer(value -> each.accept(bytes(value.getValue()))))
                .get();
        return () -> client.disconnect().get();
    }

    private static OpcUaClient connected(Address to) throws Exception {
        OpcUaClient client = OpcUaClient.create(
                "opc.tcp://" + to.host() + ":" + to.port() + "/exchange",
                endpoints -> endpoints.stream().findFirst(),
                config -> config.setRequestTimeout(uint(PATIENCE_MS)).build());
        client.connect().get();
        return client;
    }

    private static NodeId node(OpcUaClient client, String name) {
        return new NodeId(client.getNamespaceTable().getIndex(SPACE), name);
    }

    private static Variant variant(byte[] bytes) {
        return new Variant(ByteString.of(bytes));
    }

    private static byte[] bytes(Variant value) {
        return ((ByteString) value.getValue()).bytesOrEmpty();
    }
}
