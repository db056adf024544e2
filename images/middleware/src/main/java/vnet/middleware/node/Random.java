package vnet.middleware.node;

/** Random values for an object's fields by SplitMix64 (Steele, Lea, Flood 2014), which other programs can reproduce from the seed. */
final class Random {
    private long state;

    Random(long seed) {
        state = seed;
    }

    long next() {
        state += 0x9E3779B97F4A7C15L;
        long z = state;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }

    int below(int bound) {
        return (int) Long.remainderUnsigned(next(), bound);
    }

    boolean flag() {
        return next() < 0;
    }

    /** Returns a number from 0 to `scale` with five digits, which text represents exactly. */
    float value(float scale) {
        return scale * below(100_000) / 100_000f;
    }

    <T> T of(T[] those) {
        return those[below(those.length)];
    }

    String letters(int count) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < count; i++) {
            text.append((char) ('a' + below(26)));
        }
        return text.toString();
    }
}
