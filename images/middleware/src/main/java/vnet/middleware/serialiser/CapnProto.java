package vnet.middleware.serialiser;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.capnproto.MessageBuilder;
import org.capnproto.SegmentBuilder;
import org.capnproto.SegmentReader;
import org.capnproto.Serialize;
import org.capnproto.StructBuilder;
import org.capnproto.StructFactory;
import org.capnproto.StructReader;
import org.capnproto.StructSize;
import org.capnproto.Text;
import vnet.middleware.Serialiser;
import vnet.middleware.node.Mmxu;

/**
 * Serialises to Cap'n Proto, unpacked, without generated code: a struct for each class, with its fields in order and at the offsets
 * that `capnp` assigns. `read` reads the whole object; access to single fields in place is not used.
 */
public final class CapnProto implements Serialiser {
    private static final Map<Class<?>, Struct> STRUCTS = new ConcurrentHashMap<>();

    @Override
    public byte[] write(Mmxu node) throws IOException, IllegalAccessException {
        MessageBuilder message = new MessageBuilder();
        message.initRoot(struct(Mmxu.class)).fill(node);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        Serialize.write(Channels.newChannel(bytes), message);
        return bytes.toByteArray();
    }

    @Override
    public Mmxu read(byte[] bytes) throws IOException, ReflectiveOperationException {
        return (Mmxu) Serialize.read(ByteBuffer.wrap(bytes)).getRoot(struct(Mmxu.class)).object();
    }

    private static Struct struct(Class<?> of) {
        Struct known = STRUCTS.get(of);
        if (known == null) {
            known = new Struct(of);
            STRUCTS.put(of, known);
        }
        return known;
    }

    /** The layout of a class: at[i] is the offset of field i, in units of its width, or the index of its pointer. */
    private static final class Struct extends StructFactory<Builder, Reader> {
        private static final int WORD_BITS = 64;

        private final Class<?> of;
        private final List<Field> fields;
        private final int[] at;
        private final StructSize size;

        Struct(Class<?> of) {
            this.of = of;
            fields = Tree.fields(of);
            at = new int[fields.size()];
            java.util.BitSet taken = new java.util.BitSet();
            int pointers = 0;
            for (int i = 0; i < at.length; i++) {
                int bits = bits(fields.get(i).getType());
                at[i] = bits == 0 ? pointers++ : placed(taken, bits);
            }
            size = new StructSize((short) ((taken.length() + WORD_BITS - 1) / WORD_BITS), (short) pointers);
        }

        /** Marks and returns the first free offset, in units of `bits`: a new word begins when no gap is left for a field, as in `capnp`. */
        private static int placed(java.util.BitSet taken, int bits) {
            int place = 0;
            while (!taken.get(place * bits, (place + 1) * bits).isEmpty()) {
                place++;
            }
            taken.set(place * bits, (place + 1) * bits);
            return place;
        }

        private static int bits(Class<?> type) {
            return type == boolean.class ? 1 : type == int.class || type == float.class ? 32 : type == long.class ? 64 : 0;
        }

        @Override
        public Builder constructBuilder(SegmentBuilder segment, int data, int pointers, int dataSize, short pointerCount) {
            return new Builder(this, segment, data, pointers, dataSize, pointerCount);
        }

        @Override
        public Reader constructReader(
                SegmentReader segment, int data, int pointers, int dataSize, short pointerCount, int nestingLimit) {
            return new Reader(this, segment, data, pointers, dataSize, pointerCount, nestingLimit);
        }

        @Override
        public StructSize structSize() {
            return size;
        }

        @Override
        public Reader asReader(Builder builder) {
            return builder.asReader();
        }
    }

    private static final class Builder extends StructBuilder {
        private final Struct struct;

        Builder(Struct struct, SegmentBuilder segment, int data, int pointers, int dataSize, short pointerCount) {
            super(segment, data, pointers, dataSize, pointerCount);
            this.struct = struct;
        }

        void fill(Object from) throws IllegalAccessException {
            for (int i = 0; i < struct.at.length; i++) {
                Field field = struct.fields.get(i);
                Class<?> type = field.getType();
                if (type == boolean.class) {
                    _setBooleanField(struct.at[i], field.getBoolean(from));
                } else if (type == int.class) {
                    _setIntField(struct.at[i], field.getInt(from));
                } else if (type == long.class) {
                    _setLongField(struct.at[i], field.getLong(from));
                } else if (type == float.class) {
                    _setFloatField(struct.at[i], field.getFloat(from));
                } else {
                    point(struct.at[i], type, field.get(from));
                }
            }
        }

        private void point(int pointer, Class<?> type, Object to) throws IllegalAccessException {
            if (to instanceof String text) {
                _setPointerField(Text.factory, pointer, new Text.Reader(text));
            } else if (to != null) {
                _initPointerField(struct(type), pointer, 0).fill(to);
            }
        }

        Reader asReader() {
            return new Reader(struct, segment, data, pointers, dataSize, pointerCount, Integer.MAX_VALUE);
        }
    }

    private static final class Reader extends StructReader {
        private final Struct struct;

        Reader(
                Struct struct, SegmentReader segment, int data, int pointers, int dataSize, short pointerCount, int nestingLimit) {
            super(segment, data, pointers, dataSize, pointerCount, nestingLimit);
            this.struct = struct;
        }

        Object object() throws ReflectiveOperationException {
            Object made = struct.of.getDeclaredConstructor().newInstance();
            for (int i = 0; i < struct.at.length; i++) {
                Field field = struct.fields.get(i);
                Class<?> type = field.getType();
                if (type == boolean.class) {
                    field.setBoolean(made, _getBooleanField(struct.at[i]));
                } else if (type == int.class) {
                    field.setInt(made, _getIntField(struct.at[i]));
                } else if (type == long.class) {
                    field.setLong(made, _getLongField(struct.at[i]));
                } else if (type == float.class) {
                    field.setFloat(made, _getFloatField(struct.at[i]));
                } else if (!_pointerFieldIsNull(struct.at[i])) {
                    field.set(made, pointed(struct.at[i], type));
                }
            }
            return made;
        }

        private Object pointed(int pointer, Class<?> type) throws ReflectiveOperationException {
            return type == String.class
                    ? _getPointerField(Text.factory, pointer).toString()
                    : _getPointerField(struct(type), pointer).object();
        }
    }
}
