package vnet.middleware.node;

import java.io.Serializable;
import java.util.Objects;

/** Quality of a value (IEC 61850-7-3, 6.2). */
public class Quality implements Serializable {
    private static final long serialVersionUID = 1L;

    public String validity;
    public boolean overflow;
    public boolean outOfRange;
    public boolean badReference;
    public boolean oscillatory;
    public boolean failure;
    public boolean oldData;
    public boolean inconsistent;
    public boolean inaccurate;
    public String source;
    public boolean test;
    public boolean operatorBlocked;

    static Quality filled(Random random) {
        Quality made = new Quality();
        made.validity = random.of(new String[] {"good", "invalid", "questionable"});
        made.overflow = random.flag();
        made.outOfRange = random.flag();
        made.badReference = random.flag();
        made.oscillatory = random.flag();
        made.failure = random.flag();
        made.oldData = random.flag();
        made.inconsistent = random.flag();
        made.inaccurate = random.flag();
        made.source = random.of(new String[] {"process", "substituted"});
        made.test = random.flag();
        made.operatorBlocked = random.flag();
        return made;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Quality that
                && Objects.equals(validity, that.validity)
                && overflow == that.overflow
                && outOfRange == that.outOfRange
                && badReference == that.badReference
                && oscillatory == that.oscillatory
                && failure == that.failure
                && oldData == that.oldData
                && inconsistent == that.inconsistent
                && inaccurate == that.inaccurate
                && Objects.equals(source, that.source)
                && test == that.test
                && operatorBlocked == that.operatorBlocked;
    }

    @Override
    public int hashCode() {
        return Objects.hash(validity, overflow, outOfRange, badReference, oscillatory, failure, oldData, inconsistent, inaccurate, source, test, operatorBlocked);
    }
}
