package vnet.middleware.transport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import vnet.middleware.Middleware.Address;

class DaemonTest {
    private static final Address NOBODY = new Address("127.0.0.1", 1);

    @Test
    @Timeout(30)
    void theEndOfTheLogOfAServerThatDoesNotComeUpIsSaid() {
        String script = "for i in 1 2 3 4 5 6 7; do echo line $i; done; exit 1";
        IOException failed = assertThrows(IOException.class, () -> new Daemon(NOBODY, directory -> List.of("sh", "-c", script)));
        assertEquals(
                "sh: does not listen on port 1; its log ends with\nline 3\nline 4\nline 5\nline 6\nline 7", failed.getMessage());
    }

    @Test
    void aServerThatIsNotInstalledIsNamed() {
        IOException failed = assertThrows(IOException.class, () -> new Daemon(NOBODY, directory -> List.of("no-such-server")));
        assertTrue(failed.getMessage().contains("no-such-server"), failed.getMessage());
    }
}
