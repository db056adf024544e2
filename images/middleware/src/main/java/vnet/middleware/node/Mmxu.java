package vnet.middleware.node;

import jakarta.xml.bind.annotation.XmlRootElement;
import java.io.Serializable;
import java.util.Objects;

/** MMXU: a logical node with measurements of a three-phase system (IEC 61850-7-4, 5.10.10); only the fields of the experiment. */
@XmlRootElement
public class Mmxu implements Serializable {
    private static final long serialVersionUID = 1L;

    public Ens mod;
    public Ens beh;
    public Ens health;
    public Lpl namPlt;
    public Mv totW;
    public Mv totVAr;
    public Mv hz;
    public Wye phV;
    public Wye a;

    public static Mmxu filled(long seed) {
        Random random = new Random(seed);
        Mmxu made = new Mmxu();
        made.mod = Ens.filled(random);
        made.beh = Ens.filled(random);
        made.health = Ens.filled(random);
        made.namPlt = Lpl.filled(random);
        made.totW = Mv.filled(random);
        made.totVAr = Mv.filled(random);
        made.hz = Mv.filled(random);
        made.phV = Wye.filled(random);
        made.a = Wye.filled(random);
        return made;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Mmxu that
                && Objects.equals(mod, that.mod)
                && Objects.equals(beh, that.beh)
                && Objects.equals(health, that.health)
                && Objects.equals(namPlt, that.namPlt)
                && Objects.equals(totW, that.totW)
                && Objects.equals(totVAr, that.totVAr)
                && Objects.equals(hz, that.hz)
                && Objects.equals(phV, that.phV)
                && Objects.equals(a, that.a);
    }

    @Override
    public int hashCode() {
        return Objects.hash(mod, beh, health, namPlt, totW, totVAr, hz, phV, a);
    }
}
