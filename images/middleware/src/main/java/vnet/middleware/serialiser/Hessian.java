package vnet.middleware.serialiser;

import com.caucho.hessian.io.Hessian2Input;
import com.caucho.hessian.io.Hessian2Output;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import vnet.middleware.Serialiser;
import vnet.middleware.node.Mmxu;

/** Serialises by Hessian 2. */
public final class Hessian implements Serialiser {
    @Override
    public byte[] write(Mmxu node) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        Hessian2Output out = new Hessian2Output(bytes);
        out.writeObject(node);
        out.close();
        return bytes.toByteArray();
    }

    @Override
    public Mmxu read(byte[] bytes) throws IOException {
        return (Mmxu) new Hessian2Input(new ByteArrayInputStream(bytes)).readObject(Mmxu.class);
    }
}
