# Starts one side of an exchange: the Java program takes this shell's place, so that signals reach it.
set -eu
command -v java >/dev/null || { echo "vnet: java is missing; install Debian's openjdk-17-jre-headless"; exit 1; }
[ -r "$JAR" ] || { echo "vnet: $JAR is missing; run make middleware"; exit 1; }
# The heap is as large from the beginning as it may get, and one thread collects: a node is a small machine. No file of
# counters, which /tmp would keep, and no address but those of IPv4.
exec java "-Xms$HEAP" "-Xmx$HEAP" -XX:+UseSerialGC -XX:-UsePerfData -Djava.net.preferIPv4Stack=true \
  -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -Djava.awt.headless=true -jar "$JAR" run "$SETTINGS"
