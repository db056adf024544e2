package vnet.middleware;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;

/** Creates middleware and serialisers by their names in the registry known.json, which the planner reads too. */
public final class Known {
    private static final JsonNode FILE = read();

    private Known() {}

    public static List<String> names(String of) {
        List<String> found = new ArrayList<>();
        FILE.path(of).fieldNames().forEachRemaining(found::add);
        return found;
    }

    public static Middleware middleware(String name) throws ReflectiveOperationException {
        return (Middleware) make("middleware", "transport", name);
    }

    public static Serialiser serialiser(String name) throws ReflectiveOperationException {
        return (Serialiser) make("serialisers", "serialiser", name);
    }

    private static Object make(String of, String where, String name) throws ReflectiveOperationException {
        JsonNode entry = FILE.path(of).path(name);
        if (entry.isMissingNode()) {
            throw new IllegalArgumentException(name + ": not known; known are " + String.join(", ", names(of)));
        }
        return Class.forName("vnet.middleware." + where + "." + entry.path("class").asText()).getDeclaredConstructor().newInstance();
    }

    private static JsonNode read() {
        try (InputStream file = Known.class.getResourceAsStream("/known.json")) {
            return new ObjectMapper().readTree(file);
        } catch (IOException e) {
            throw new IllegalStateException("known.json", e);
        }
    }
}
