package vnet.middleware.serialiser;

import co.nstant.in.cbor.CborDecoder;
import co.nstant.in.cbor.CborEncoder;
import co.nstant.in.cbor.CborException;
import co.nstant.in.cbor.model.DataItem;
import co.nstant.in.cbor.model.Map;
import co.nstant.in.cbor.model.NegativeInteger;
import co.nstant.in.cbor.model.SimpleValue;
import co.nstant.in.cbor.model.SinglePrecisionFloat;
import co.nstant.in.cbor.model.UnicodeString;
import co.nstant.in.cbor.model.UnsignedInteger;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.lang.reflect.Field;
import vnet.middleware.Serialiser;
import vnet.middleware.node.Mmxu;

/** Serialises to CBOR by cbor-java (co.nstant.in): each object is a map keyed by field name. */
public final class Cbor implements Serialiser {
    @Override
    public byte[] write(Mmxu node) throws CborException, IllegalAccessException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        new CborEncoder(bytes).encode(item(node));
        return bytes.toByteArray();
    }

    private static DataItem item(Object value) throws IllegalAccessException {
        if (value instanceof String text) {
            return new UnicodeString(text);
        } else if (value instanceof Boolean flag) {
            return flag ? SimpleValue.TRUE : SimpleValue.FALSE;
        } else if (value instanceof Float number) {
            return new SinglePrecisionFloat(number);
        } else if (value instanceof Number number) {
            long whole = number.longValue();
            return whole < 0 ? new NegativeInteger(whole) : new UnsignedInteger(whole);
        }
        Map map = new Map();
        for (Field field : Tree.fields(value.getClass())) {
            map.put(new UnicodeString(field.getName()), item(field.get(value)));
        }
        return map;
    }

    @Override
    public Mmxu read(byte[] bytes) throws CborException, ReflectiveOperationException {
        return (Mmxu) object(new CborDecoder(new ByteArrayInputStream(bytes)).decodeNext(), Mmxu.class);
    }

    private static Object object(DataItem item, Class<?> type) throws ReflectiveOperationException {
        if (type == String.class) {
            return ((UnicodeString) item).getString();
        } else if (type == boolean.class) {
            return item.equals(SimpleValue.TRUE);
        } else if (type == float.class) {
            return ((SinglePrecisionFloat) item).getValue();
        } else if (type == int.class) {
            return ((co.nstant.in.cbor.model.Number) item).getValue().intValueExact();
        } else if (type == long.class) {
            return ((co.nstant.in.cbor.model.Number) item).getValue().longValueExact();
        }
        Object made = type.getDeclaredConstructor().newInstance();
        for (Field field : Tree.fields(type)) {
            field.set(made, object(((Map) item).get(new UnicodeString(field.getName())), field.getType()));
        }
        return made;
    }
}
