package vnet.middleware.serialiser;

import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import vnet.middleware.Serialiser;
import vnet.middleware.node.Mmxu;

/** Serialises by Kryo; classes are identified by name. */
public final class Kryo implements Serialiser {
    private final com.esotericsoftware.kryo.Kryo kryo = new com.esotericsoftware.kryo.Kryo();
    private final Output output = new Output(4096, -1);

    public Kryo() {
        kryo.setRegistrationRequired(false);
    }

    @Override
    public byte[] write(Mmxu node) {
        output.reset();
        kryo.writeObject(output, node);
        return output.toBytes();
    }

    @Override
    public Mmxu read(byte[] bytes) {
        return kryo.readObject(new Input(bytes), Mmxu.class);
    }
}
