package vnet.middleware.node;

import java.io.Serializable;
import java.util.Objects;

/** ENS: an enumerated status (IEC 61850-7-3, 7.3.4). */
public class Ens implements Serializable {
    private static final long serialVersionUID = 1L;

    public int stVal;
    public Quality q;
    public Timestamp t;

    static Ens filled(Random random) {
        Ens made = new Ens();
        made.stVal = 1 + random.below(5);
        made.q = Quality.filled(random);
        made.t = Timestamp.filled(random);
        return made;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Ens that
                && stVal == that.stVal
                && Objects.equals(q, that.q)
                && Objects.equals(t, that.t);
    }

    @Override
    public int hashCode() {
        return Objects.hash(stVal, q, t);
    }
}
