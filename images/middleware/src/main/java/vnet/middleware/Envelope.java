package vnet.middleware;

import java.nio.ByteBuffer;

/** What stands before each serialised object: which message of which flow it is. A request is nothing else. */
record Envelope(int flow, long seq) {
    static final int BYTES = 12;
    /** A flow that nobody accounts for: of warming up. */
    static final int WARM_UP = -1;

    byte[] before(byte[] object) {
        return ByteBuffer.allocate(BYTES + object.length).putInt(flow).putLong(seq).put(object).array();
    }

    static Envelope of(byte[] message) {
        ByteBuffer buffer = ByteBuffer.wrap(message);
        return new Envelope(buffer.getInt(), buffer.getLong());
    }

    static byte[] object(byte[] message) {
        return java.util.Arrays.copyOfRange(message, BYTES, message.length);
    }
}
