package vnet.middleware.serialiser;

import java.io.IOException;
import java.lang.reflect.Field;
import java.util.List;
import org.msgpack.core.MessageBufferPacker;
import org.msgpack.core.MessagePack;
import org.msgpack.core.MessagePacker;
import org.msgpack.core.MessageUnpacker;
import vnet.middleware.Serialiser;
import vnet.middleware.node.Mmxu;

/** Serialises to MessagePack by its own library: each object is a map keyed by field name. */
public final class MsgPack implements Serialiser {
    @Override
    public byte[] write(Mmxu node) throws IOException, IllegalAccessException {
        try (MessageBufferPacker packer = MessagePack.newDefaultBufferPacker()) {
            pack(packer, node);
            return packer.toByteArray();
        }
    }

    private static void pack(MessagePacker packer, Object value) throws IOException, IllegalAccessException {
        if (value instanceof String text) {
            packer.packString(text);
        } else if (value instanceof Boolean flag) {
            packer.packBoolean(flag);
        } else if (value instanceof Integer number) {
            packer.packInt(number);
        } else if (value instanceof Long number) {
            packer.packLong(number);
        } else if (value instanceof Float number) {
            packer.packFloat(number);
        } else {
            List<Field> fields = Tree.fields(value.getClass());
            packer.packMapHeader(fields.size());
            for (Field field : fields) {
                packer.packString(field.getName());
                pack(packer, field.get(value));
            }
        }
    }

    @Override
    public Mmxu read(byte[] bytes) throws IOException, ReflectiveOperationException {
        try (MessageUnpacker unpacker = MessagePack.newDefaultUnpacker(bytes)) {
            return (Mmxu) unpack(unpacker, Mmxu.class);
        }
    }

    private static Object unpack(MessageUnpacker unpacker, Class<?> type) throws IOException, ReflectiveOperationException {
        if (type == String.class) {
            return unpacker.unpackString();
        } else if (type == boolean.class) {
            return unpacker.unpackBoolean();
        } else if (type == int.class) {
            return unpacker.unpackInt();
        } else if (type == long.class) {
            return unpacker.unpackLong();
        } else if (type == float.class) {
            return unpacker.unpackFloat();
        }
        Object made = type.getDeclaredConstructor().newInstance();
        for (int left = unpacker.unpackMapHeader(); left > 0; left--) {
            Field field = type.getDeclaredField(unpacker.unpackString());
            field.set(made, unpack(unpacker, field.getType()));
        }
        return made;
    }
}
