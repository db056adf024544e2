package vnet.middleware.serialiser;

import com.fasterxml.jackson.core.FormatSchema;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.databind.JsonMappingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import com.fasterxml.jackson.dataformat.avro.AvroMapper;
import com.fasterxml.jackson.dataformat.cbor.databind.CBORMapper;
import com.fasterxml.jackson.dataformat.protobuf.ProtobufMapper;
import com.fasterxml.jackson.dataformat.smile.databind.SmileMapper;
import com.fasterxml.jackson.dataformat.xml.XmlMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLMapper;
import de.undercouch.bson4jackson.BsonFactory;
import java.io.IOException;
import org.msgpack.jackson.dataformat.MessagePackFactory;
import vnet.middleware.Serialiser;
import vnet.middleware.node.Mmxu;

/** Serialises by Jackson: one object binding for all formats, and a subclass with a factory for each format. */
abstract class Jackson implements Serialiser {
    private final ObjectWriter writer;
    private final ObjectReader reader;

    Jackson(ObjectMapper mapper) {
        writer = mapper.writerFor(Mmxu.class);
        reader = mapper.readerFor(Mmxu.class);
    }

    Jackson(ObjectMapper mapper, FormatSchema schema) {
        writer = mapper.writerFor(Mmxu.class).with(schema);
        reader = mapper.readerFor(Mmxu.class).with(schema);
    }

    @Override
    public final byte[] write(Mmxu node) throws IOException {
        return writer.writeValueAsBytes(node);
    }

    @Override
    public final Mmxu read(byte[] bytes) throws IOException {
        return reader.readValue(bytes);
    }

    public static final class Json extends Jackson {
        public Json() {
            super(new ObjectMapper(new JsonFactory()));
        }
    }

    public static final class Xml extends Jackson {
        public Xml() {
            super(new XmlMapper());
        }
    }

    public static final class Yaml extends Jackson {
        public Yaml() {
            super(new YAMLMapper());
        }
    }

    public static final class Smile extends Jackson {
        public Smile() {
            super(new SmileMapper());
        }
    }

    public static final class Cbor extends Jackson {
        public Cbor() {
            super(new CBORMapper());
        }
    }

    public static final class MsgPack extends Jackson {
        public MsgPack() {
            super(new ObjectMapper(new MessagePackFactory()));
        }
    }

    public static final class Bson extends Jackson {
        public Bson() {
            super(new ObjectMapper(new BsonFactory()));
        }
    }

    public static final class Avro extends Jackson {
        public Avro() throws JsonMappingException {
            this(new AvroMapper());
        }

        private Avro(AvroMapper mapper) throws JsonMappingException {
            super(mapper, mapper.schemaFor(Mmxu.class));
        }
    }

    public static final class Protobuf extends Jackson {
        public Protobuf() throws JsonMappingException {
            this(new ProtobufMapper());
        }

        private Protobuf(ProtobufMapper mapper) throws JsonMappingException {
            super(mapper, mapper.generateSchemaFor(Mmxu.class));
        }
    }
}
