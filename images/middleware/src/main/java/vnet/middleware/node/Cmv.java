package vnet.middleware.node;

import java.io.Serializable;
import java.util.Objects;

/** CMV: a complex measured value (IEC 61850-7-3, 7.4.3). */
public class Cmv implements Serializable {
    private static final long serialVersionUID = 1L;

    public Vector instCVal;
    public Vector cVal;
    public int range;
    public Quality q;
    public Timestamp t;

    static Cmv filled(Random random) {
        Cmv made = new Cmv();
        made.instCVal = Vector.filled(random);
        made.cVal = Vector.filled(random);
        made.range = random.below(5);
        made.q = Quality.filled(random);
        made.t = Timestamp.filled(random);
        return made;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Cmv that
                && Objects.equals(instCVal, that.instCVal)
                && Objects.equals(cVal, that.cVal)
                && range == that.range
                && Objects.equals(q, that.q)
                && Objects.equals(t, that.t);
    }

    @Override
    public int hashCode() {
        return Objects.hash(instCVal, cVal, range, q, t);
    }
}
