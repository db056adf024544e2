package vnet.middleware.node;

import java.io.Serializable;
import java.util.Objects;

/** The time of a value (IEC 61850-7-2, 6.1.2.9). */
public class Timestamp implements Serializable {
    private static final long serialVersionUID = 1L;

    public long secondSinceEpoch;
    public int fractionOfSecond;
    public boolean leapSecondsKnown;
    public boolean clockFailure;
    public boolean clockNotSynchronized;
    public int timeAccuracy;

    static Timestamp filled(Random random) {
        Timestamp made = new Timestamp();
        made.secondSinceEpoch = 1_500_000_000L + random.below(100_000_000);
        made.fractionOfSecond = random.below(1 << 24);
        made.leapSecondsKnown = random.flag();
        made.clockFailure = random.flag();
        made.clockNotSynchronized = random.flag();
        made.timeAccuracy = random.below(25);
        return made;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Timestamp that
                && secondSinceEpoch == that.secondSinceEpoch
                && fractionOfSecond == that.fractionOfSecond
                && leapSecondsKnown == that.leapSecondsKnown
                && clockFailure == that.clockFailure
                && clockNotSynchronized == that.clockNotSynchronized
                && timeAccuracy == that.timeAccuracy;
    }

    @Override
    public int hashCode() {
        return Objects.hash(secondSinceEpoch, fractionOfSecond, leapSecondsKnown, clockFailure, clockNotSynchronized, timeAccuracy);
    }
}
