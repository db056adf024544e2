package vnet.middleware.node;

import java.io.Serializable;
import java.util.Objects;

/** A value as an integer and as a floating-point number (IEC 61850-7-3, 6.3). */
public class AnalogueValue implements Serializable {
    private static final long serialVersionUID = 1L;

    public int i;
    public float f;

    static AnalogueValue filled(Random random) {
        AnalogueValue made = new AnalogueValue();
        made.i = random.below(100_000);
        made.f = random.value(1_000f);
        return made;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof AnalogueValue that
                && i == that.i
                && Float.compare(f, that.f) == 0;
    }

    @Override
    public int hashCode() {
        return Objects.hash(i, f);
    }
}
