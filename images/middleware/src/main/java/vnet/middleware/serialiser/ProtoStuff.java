package vnet.middleware.serialiser;

import io.protostuff.JsonIOUtil;
import io.protostuff.LinkedBuffer;
import io.protostuff.ProtobufIOUtil;
import io.protostuff.ProtostuffIOUtil;
import io.protostuff.Schema;
import io.protostuff.SmileIOUtil;
import io.protostuff.XmlIOUtil;
import io.protostuff.runtime.RuntimeSchema;
import java.io.IOException;
import vnet.middleware.Serialiser;
import vnet.middleware.node.Mmxu;

/** Serialises by ProtoStuff, with a subclass for each format; ProtoStuff derives the schema from the classes at run time. */
abstract class ProtoStuff implements Serialiser {
    private static final int BUFFER_BYTES = 4096;

    final Schema<Mmxu> schema = RuntimeSchema.getSchema(Mmxu.class);
    final LinkedBuffer buffer = LinkedBuffer.allocate(BUFFER_BYTES);

    abstract void merge(byte[] bytes, Mmxu node) throws IOException;

    abstract byte[] bytes(Mmxu node);

    @Override
    public final byte[] write(Mmxu node) {
        try {
            return bytes(node);
        } finally {
            buffer.clear();
        }
    }

    @Override
    public final Mmxu read(byte[] bytes) throws IOException {
        Mmxu node = schema.newMessage();
        merge(bytes, node);
        return node;
    }

    public static final class Own extends ProtoStuff {
        @Override
        byte[] bytes(Mmxu node) {
            return ProtostuffIOUtil.toByteArray(node, schema, buffer);
        }

        @Override
        void merge(byte[] bytes, Mmxu node) {
            ProtostuffIOUtil.mergeFrom(bytes, node, schema);
        }
    }

    public static final class Protobuf extends ProtoStuff {
        @Override
        byte[] bytes(Mmxu node) {
            return ProtobufIOUtil.toByteArray(node, schema, buffer);
        }

        @Override
        void merge(byte[] bytes, Mmxu node) {
            ProtobufIOUtil.mergeFrom(bytes, node, schema);
        }
    }

    /** Serialises to JSON with field numbers as names, which no other JSON library reads as an object of this class. */
    public static final class Json extends ProtoStuff {
        @Override
        byte[] bytes(Mmxu node) {
            return JsonIOUtil.toByteArray(node, schema, true, buffer);
        }

        @Override
        void merge(byte[] bytes, Mmxu node) throws IOException {
            JsonIOUtil.mergeFrom(bytes, node, schema, true);
        }
    }

    public static final class Smile extends ProtoStuff {
        @Override
        byte[] bytes(Mmxu node) {
            return SmileIOUtil.toByteArray(node, schema, true, buffer);
        }

        @Override
        void merge(byte[] bytes, Mmxu node) throws IOException {
            SmileIOUtil.mergeFrom(bytes, node, schema, true);
        }
    }

    public static final class Xml extends ProtoStuff {
        @Override
        byte[] bytes(Mmxu node) {
            return XmlIOUtil.toByteArray(node, schema);
        }

        @Override
        void merge(byte[] bytes, Mmxu node) {
            XmlIOUtil.mergeFrom(bytes, node, schema);
        }
    }
}
