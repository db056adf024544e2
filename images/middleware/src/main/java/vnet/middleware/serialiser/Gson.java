package vnet.middleware.serialiser;

import java.nio.charset.StandardCharsets;
import vnet.middleware.Serialiser;
import vnet.middleware.node.Mmxu;

/** Serialises to JSON by Gson. */
public final class Gson implements Serialiser {
    private final com.google.gson.Gson gson = new com.google.gson.Gson();

    @Override
    public byte[] write(Mmxu node) {
        return gson.toJson(node).getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public Mmxu read(byte[] bytes) {
        return gson.fromJson(new String(bytes, StandardCharsets.UTF_8), Mmxu.class);
    }
}
