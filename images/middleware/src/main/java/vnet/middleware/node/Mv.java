package vnet.middleware.node;

import java.io.Serializable;
import java.util.Objects;

/** MV: a measured value (IEC 61850-7-3, 7.4.2). */
public class Mv implements Serializable {
    private static final long serialVersionUID = 1L;

    public AnalogueValue instMag;
    public AnalogueValue mag;
    public int range;
    public Quality q;
    public Timestamp t;

    static Mv filled(Random random) {
        Mv made = new Mv();
        made.instMag = AnalogueValue.filled(random);
        made.mag = AnalogueValue.filled(random);
        made.range = random.below(5);
        made.q = Quality.filled(random);
        made.t = Timestamp.filled(random);
        return made;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Mv that
                && Objects.equals(instMag, that.instMag)
                && Objects.equals(mag, that.mag)
                && range == that.range
                && Objects.equals(q, that.q)
                && Objects.equals(t, that.t);
    }

    @Override
    public int hashCode() {
        return Objects.hash(instMag, mag, range, q, t);
    }
}
