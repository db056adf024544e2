package vnet.middleware.serialiser;

import jakarta.xml.bind.JAXBContext;
import jakarta.xml.bind.JAXBException;
import jakarta.xml.bind.Marshaller;
import jakarta.xml.bind.Unmarshaller;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import vnet.middleware.Serialiser;
import vnet.middleware.node.Mmxu;

/** Serialises to XML by JAXB. */
public final class Jaxb implements Serialiser {
    private final Marshaller marshaller;
    private final Unmarshaller unmarshaller;

    public Jaxb() throws JAXBException {
        JAXBContext context = JAXBContext.newInstance(Mmxu.class);
        marshaller = context.createMarshaller();
        unmarshaller = context.createUnmarshaller();
    }

    @Override
    public byte[] write(Mmxu node) throws JAXBException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        marshaller.marshal(node, out);
        return out.toByteArray();
    }

    @Override
    public Mmxu read(byte[] bytes) throws JAXBException {
        return (Mmxu) unmarshaller.unmarshal(new ByteArrayInputStream(bytes));
    }
}
