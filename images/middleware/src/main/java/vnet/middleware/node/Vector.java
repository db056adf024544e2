package vnet.middleware.node;

import java.io.Serializable;
import java.util.Objects;

/** Magnitude and angle (IEC 61850-7-3, 6.8). */
public class Vector implements Serializable {
    private static final long serialVersionUID = 1L;

    public AnalogueValue mag;
    public AnalogueValue ang;

    static Vector filled(Random random) {
        Vector made = new Vector();
        made.mag = AnalogueValue.filled(random);
        made.ang = AnalogueValue.filled(random);
        return made;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Vector that
                && Objects.equals(mag, that.mag)
                && Objects.equals(ang, that.ang);
    }

    @Override
    public int hashCode() {
        return Objects.hash(mag, ang);
    }
}
