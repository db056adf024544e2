package vnet.middleware.serialiser;

import com.thoughtworks.xstream.io.HierarchicalStreamDriver;
import com.thoughtworks.xstream.io.json.JettisonMappedXmlDriver;
import com.thoughtworks.xstream.io.xml.MXParserDriver;
import java.nio.charset.StandardCharsets;
import vnet.middleware.Serialiser;
import vnet.middleware.node.Mmxu;

/** Serialises by XStream, with a subclass each for XML and JSON. */
abstract class XStream implements Serialiser {
    private final com.thoughtworks.xstream.XStream xstream;

    XStream(HierarchicalStreamDriver driver) {
        xstream = new com.thoughtworks.xstream.XStream(driver);
        xstream.allowTypesByWildcard(new String[] {Mmxu.class.getPackageName() + ".*"});
        xstream.alias("mmxu", Mmxu.class);
    }

    @Override
    public final byte[] write(Mmxu node) {
        return xstream.toXML(node).getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public final Mmxu read(byte[] bytes) {
        return (Mmxu) xstream.fromXML(new String(bytes, StandardCharsets.UTF_8));
    }

    public static final class Xml extends XStream {
        public Xml() {
            super(new MXParserDriver());
        }
    }

    public static final class Json extends XStream {
        public Json() {
            super(new JettisonMappedXmlDriver());
        }
    }
}
