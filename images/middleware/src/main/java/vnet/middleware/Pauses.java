package vnet.middleware;

import com.sun.management.GarbageCollectionNotificationInfo;
import com.sun.management.GcInfo;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import javax.management.NotificationEmitter;
import javax.management.openmbean.CompositeData;

/** Records pauses of garbage collection as spans of this program; the JVM reports them in whole milliseconds. */
final class Pauses {
    private static final long MS = 1_000_000;

    private Pauses() {}

    static void tell(Account account) {
        long begunNs = account.nowNs() - ManagementFactory.getRuntimeMXBean().getUptime() * MS;
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            ((NotificationEmitter) collector).addNotificationListener((said, nothing) -> {
                if (said.getType().equals(GarbageCollectionNotificationInfo.GARBAGE_COLLECTION_NOTIFICATION)) {
                    GcInfo pause = GarbageCollectionNotificationInfo.from((CompositeData) said.getUserData()).getGcInfo();
                    account.span("garbage-collection", begunNs + pause.getStartTime() * MS, pause.getDuration() * MS);
                }
            }, null, null);
        }
    }
}
