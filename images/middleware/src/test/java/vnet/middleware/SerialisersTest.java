package vnet.middleware;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import vnet.middleware.node.Mmxu;

class SerialisersTest {
    static List<String> names() {
        return Known.names("serialisers");
    }

    @ParameterizedTest
    @MethodSource("names")
    void whatIsReadEqualsWhatWasWritten(String name) throws Exception {
        Serialiser serialiser = Known.serialiser(name);
        for (long seed = 0; seed < 20; seed++) {
            Mmxu object = Mmxu.filled(seed);
            assertEquals(object, serialiser.read(serialiser.write(object)), name + ", seed " + seed);
        }
    }

    @Test
    void whatASerialiserCannotCarryIsSaid() {
        Mmxu object = Mmxu.filled(7);
        String failed = assertThrows(IllegalArgumentException.class, () -> carrying(bytes -> {
            throw new IllegalStateException("no such type");
        }).carries("bad", object)).getMessage();
        assertEquals("bad: this serialiser cannot carry the object: java.lang.IllegalStateException: no such type", failed);
        String other = assertThrows(IllegalArgumentException.class, () -> carrying(bytes -> Mmxu.filled(8)).carries("bad", object)).getMessage();
        assertEquals("bad: this serialiser does not carry the object: what it reads is not what it wrote", other);
        carrying(bytes -> Mmxu.filled(7)).carries("good", object);
    }

    private static Serialiser carrying(Function<byte[], Mmxu> read) {
        return new Serialiser() {
            @Override
            public byte[] write(Mmxu node) {
                return new byte[0];
            }

            @Override
            public Mmxu read(byte[] bytes) {
                return read.apply(bytes);
            }
        };
    }

    @Test
    void theSameSeedFillsTheSameObject() {
        assertEquals(Mmxu.filled(7), Mmxu.filled(7));
        assertNotEquals(Mmxu.filled(7), Mmxu.filled(8));
    }
}
