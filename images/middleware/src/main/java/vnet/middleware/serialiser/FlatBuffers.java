package vnet.middleware.serialiser;

import com.google.flatbuffers.FlatBufferBuilder;
import com.google.flatbuffers.Table;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.List;
import vnet.middleware.Serialiser;
import vnet.middleware.node.Mmxu;

/**
 * Serialises to FlatBuffers: a table for each class, with its fields in order, as flatc's code for such a schema writes and reads
 * them. `read` reads the whole object; access to single fields in place is not used.
 */
public final class FlatBuffers implements Serialiser {
    private static final int FIRST_SLOT = 4; // bytes of a vtable before its first field's slot
    private static final int SLOT_BYTES = 2;

    private final FlatBufferBuilder builder = new FlatBufferBuilder(4096);

    @Override
    public byte[] write(Mmxu node) throws IllegalAccessException {
        builder.clear();
        builder.finish(table(node));
        return builder.sizedByteArray();
    }

    /** Writes the table of an object, after the targets of its references; returns the table's offset. */
    private int table(Object of) throws IllegalAccessException {
        List<Field> fields = Tree.fields(of.getClass());
        int[] offsets = new int[fields.size()];
        for (int i = 0; i < offsets.length; i++) {
            Object value = fields.get(i).get(of);
            if (value instanceof String text) {
                offsets[i] = builder.createString(text);
            } else if (value != null && !fields.get(i).getType().isPrimitive()) {
                offsets[i] = table(value);
            }
        }
        builder.startTable(offsets.length);
        for (int i = 0; i < offsets.length; i++) {
            add(i, fields.get(i), of, offsets[i]);
        }
        return builder.endTable();
    }

    private void add(int slot, Field field, Object of, int offset) throws IllegalAccessException {
        Class<?> type = field.getType();
        if (type == boolean.class) {
            builder.addBoolean(slot, field.getBoolean(of), false);
        } else if (type == int.class) {
            builder.addInt(slot, field.getInt(of), 0);
        } else if (type == long.class) {
            builder.addLong(slot, field.getLong(of), 0);
        } else if (type == float.class) {
            builder.addFloat(slot, field.getFloat(of), 0);
        } else {
            builder.addOffset(slot, offset, 0);
        }
    }

    @Override
    public Mmxu read(byte[] bytes) throws ReflectiveOperationException {
        ByteBuffer buffer = ByteBuffer.wrap(bytes).order(java.nio.ByteOrder.LITTLE_ENDIAN);
        return (Mmxu) new Reader(buffer.getInt(0), buffer).object(Mmxu.class);
    }

    private static final class Reader extends Table {
        Reader(int at, ByteBuffer buffer) {
            __reset(at, buffer);
        }

        Object object(Class<?> of) throws ReflectiveOperationException {
            Object made = of.getDeclaredConstructor().newInstance();
            List<Field> fields = Tree.fields(of);
            for (int i = 0; i < fields.size(); i++) {
                int offset = __offset(FIRST_SLOT + SLOT_BYTES * i);
                if (offset != 0) { // otherwise the field has its default, zero or null
                    set(fields.get(i), made, offset + bb_pos);
                }
            }
            return made;
        }

        private void set(Field field, Object of, int at) throws ReflectiveOperationException {
            Class<?> type = field.getType();
            if (type == boolean.class) {
                field.setBoolean(of, bb.get(at) != 0);
            } else if (type == int.class) {
                field.setInt(of, bb.getInt(at));
            } else if (type == long.class) {
                field.setLong(of, bb.getLong(at));
            } else if (type == float.class) {
                field.setFloat(of, bb.getFloat(at));
            } else if (type == String.class) {
                field.set(of, __string(at));
            } else {
                field.set(of, new Reader(__indirect(at), bb).object(type));
            }
        }
    }
}
