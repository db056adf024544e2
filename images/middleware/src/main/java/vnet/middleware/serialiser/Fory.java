package vnet.middleware.serialiser;

import org.apache.fory.config.Language;
import vnet.middleware.Serialiser;
import vnet.middleware.node.Mmxu;

/** Serialises by Apache Fory (formerly Fury) for Java; classes are identified by name. */
public final class Fory implements Serialiser {
    static {
        org.apache.fory.logging.LoggerFactory.useSlf4jLogging(true); // warnings only, as the others
    }

    private final org.apache.fory.Fory fory = org.apache.fory.Fory.builder()
            .withLanguage(Language.JAVA)
            .requireClassRegistration(false)
            .registerGuavaTypes(false)
            .suppressClassRegistrationWarnings(true)
            .build();

    @Override
    public byte[] write(Mmxu node) {
        return fory.serialize(node);
    }

    @Override
    public Mmxu read(byte[] bytes) {
        return (Mmxu) fory.deserialize(bytes);
    }
}
