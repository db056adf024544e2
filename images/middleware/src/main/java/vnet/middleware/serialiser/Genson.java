package vnet.middleware.serialiser;

import vnet.middleware.Serialiser;
import vnet.middleware.node.Mmxu;

/** Serialises to JSON by Genson. */
public final class Genson implements Serialiser {
    private final com.owlike.genson.Genson genson = new com.owlike.genson.Genson();

    @Override
    public byte[] write(Mmxu node) {
        return genson.serializeBytes(node);
    }

    @Override
    public Mmxu read(byte[] bytes) {
        return genson.deserialize(bytes, Mmxu.class);
    }
}
