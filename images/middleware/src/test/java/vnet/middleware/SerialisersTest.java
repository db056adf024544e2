package vnet.middleware;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.util.List;
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
    void theSameSeedFillsTheSameObject() {
        assertEquals(Mmxu.filled(7), Mmxu.filled(7));
        assertNotEquals(Mmxu.filled(7), Mmxu.filled(8));
    }
}
