package vnet.middleware;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.util.Set;
import java.util.TreeSet;
import vnet.middleware.Middleware.Address;

/** The planner's settings for this side: middleware, serialiser, side, patterns, addresses and times. */
record Settings(
        String middleware, String serialiser, String side, Set<String> patterns, Address address, Address own, long giveUpNs, long seed, long warmUpNs) {
    static Settings read(String path) throws IOException {
        JsonNode file = new ObjectMapper().readTree(new File(path));
        Set<String> patterns = new TreeSet<>();
        file.get("patterns").forEach(pattern -> patterns.add(pattern.asText()));
        return new Settings(
                file.get("middleware").asText(),
                file.get("serialiser").asText(),
                file.get("side").asText(),
                patterns,
                address(file.get("address")),
                address(file.get("own")),
                file.get("give_up_ns").isNull() ? Long.MAX_VALUE : file.get("give_up_ns").asLong(),
                file.get("seed").asLong(),
                file.get("warm_up_ns").asLong());
    }

    private static Address address(JsonNode at) {
        return new Address(at.get("host").asText(), at.get("port").asInt());
    }
}
