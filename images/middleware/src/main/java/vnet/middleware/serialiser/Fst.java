package vnet.middleware.serialiser;

import org.nustaq.serialization.FSTConfiguration;
import vnet.middleware.Serialiser;
import vnet.middleware.node.Mmxu;

/** Serialises by FST (fast-serialization). */
public final class Fst implements Serialiser {
    private final FSTConfiguration fst = FSTConfiguration.createDefaultConfiguration();

    @Override
    public byte[] write(Mmxu node) {
        return fst.asByteArray(node);
    }

    @Override
    public Mmxu read(byte[] bytes) {
        return (Mmxu) fst.asObject(bytes);
    }
}
