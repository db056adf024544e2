package vnet.middleware.node;

import java.io.Serializable;
import java.util.Objects;

/** WYE: phase-to-ground values of a three-phase system (IEC 61850-7-3, 7.4.5). */
public class Wye implements Serializable {
    private static final long serialVersionUID = 1L;

    public Cmv phsA;
    public Cmv phsB;
    public Cmv phsC;
    public Cmv neut;

    static Wye filled(Random random) {
        Wye made = new Wye();
        made.phsA = Cmv.filled(random);
        made.phsB = Cmv.filled(random);
        made.phsC = Cmv.filled(random);
        made.neut = Cmv.filled(random);
        return made;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Wye that
                && Objects.equals(phsA, that.phsA)
                && Objects.equals(phsB, that.phsB)
                && Objects.equals(phsC, that.phsC)
                && Objects.equals(neut, that.neut);
    }

    @Override
    public int hashCode() {
        return Objects.hash(phsA, phsB, phsC, neut);
    }
}
