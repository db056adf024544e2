package vnet.middleware.node;

import java.io.Serializable;
import java.util.Objects;

/** LPL: name plate of a logical node (IEC 61850-7-3, 7.8.3). */
public class Lpl implements Serializable {
    private static final long serialVersionUID = 1L;

    public String vendor;
    public String swRev;
    public String d;
    public String configRev;
    public String lnNs;

    static Lpl filled(Random random) {
        Lpl made = new Lpl();
        made.vendor = random.letters(12);
        made.swRev = random.letters(6);
        made.d = random.letters(24);
        made.configRev = random.letters(8);
        made.lnNs = "IEC 61850-7-4:2007";
        return made;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Lpl that
                && Objects.equals(vendor, that.vendor)
                && Objects.equals(swRev, that.swRev)
                && Objects.equals(d, that.d)
                && Objects.equals(configRev, that.configRev)
                && Objects.equals(lnNs, that.lnNs);
    }

    @Override
    public int hashCode() {
        return Objects.hash(vendor, swRev, d, configRev, lnNs);
    }
}
