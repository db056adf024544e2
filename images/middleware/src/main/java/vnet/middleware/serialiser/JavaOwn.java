package vnet.middleware.serialiser;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import vnet.middleware.Serialiser;
import vnet.middleware.node.Mmxu;

/** Serialises by Java's own object streams. */
public final class JavaOwn implements Serialiser {
    @Override
    public byte[] write(Mmxu node) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(node);
        }
        return bytes.toByteArray();
    }

    @Override
    public Mmxu read(byte[] bytes) throws IOException, ClassNotFoundException {
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes))) {
            return (Mmxu) in.readObject();
        }
    }
}
