package vnet.middleware;

import java.nio.ByteBuffer;

/** The header before each serialised object: flow and message number. A request consists of the header only. */
record Envelope(int flow, long seq) {
    static final int BYTES = 12;
    /** The flow number of warm-up messages, which are not recorded. */
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
