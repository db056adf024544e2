#!/usr/bin/env bash
# Builds the Java program of middleware and serialisers, as any user: CACHE/middleware/HASH/middleware.jar, put into target/middleware/.
#   build.sh [--test]    --test: its own tests, too (each serialiser's round trip, each middleware's exchange over loopback)
#   build.sh --lock      writes jars.sha256 anew, for other versions in pom.xml
# HASH covers sources, registry, pom.xml, the jars' hashes and the JDK. Every jar that goes into the program is compared with jars.sha256.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../.." && pwd)
cache=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vnet}/middleware
registry=$project/orchestrator/software/middleware/known.json
maven=(mvn -q -B -Dstyle.color=never -Dmaven.repo.local="$cache/repository" -Dorg.slf4j.simpleLogger.defaultLogLevel=error)

say() { printf 'middleware: %s\n' "$1"; }

fail() {
  say "$1" >&2
  exit 1
}

inputs() {
  (cd "$here" && find src/main pom.xml jars.sha256 -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
  sha256sum <"$registry"
  javac -version 2>&1
}

# Compiled beside the sources' copy, so that the tree stays as it is and the registry is found where pom.xml looks for it.
work() {
  work=$(mktemp -d "${TMPDIR:-/var/tmp}/vnet-middleware.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work/images" "$work/orchestrator/software/middleware"
  cp -r "$here" "$work/images/middleware"
  cp "$registry" "$work/orchestrator/software/middleware/"
  cd "$work/images/middleware"
}

jars() { # the jars that the program is made of, into jars/
  "${maven[@]}" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$PWD/jars" ||
    fail "Maven could not get the libraries; it says why above"
}

for tool in mvn javac; do
  command -v "$tool" >/dev/null || fail "$tool: not installed; apt-get install maven openjdk-17-jdk-headless"
done
case ${1:-} in
  --lock)
    work
    jars
    (cd jars && LC_ALL=C sha256sum -- *.jar) >"$here/jars.sha256"
    say "$(wc -l <"$here/jars.sha256") jars in jars.sha256"
    exit
    ;;
  --test)
    (
      work
      "${maven[@]}" test || fail "its tests failed, as said above"
      say "$(awk -F '[:,]' '/^Tests run:/ { tests += $2 } END { print tests }' target/surefire-reports/*.txt) tests passed"
    )
    ;;
  "") ;;
  *) fail "$1: unknown; see the head of $0" ;;
esac

hash=$(inputs | sha256sum | cut -c1-16)
jar=$cache/$hash/middleware.jar
if [ ! -e "$jar" ]; then
  say "building with $(javac -version 2>&1) (some minutes the first time: its libraries are fetched)"
  work
  jars
  (cd jars && sha256sum -c --quiet "$here/jars.sha256" && [ "$(ls | wc -l)" -eq "$(wc -l <"$here/jars.sha256")" ]) ||
    fail "the jars are not those of jars.sha256; if pom.xml names other versions, run $0 --lock"
  "${maven[@]}" package -DskipTests
  mkdir -p "$cache/$hash"
  install -m 644 target/middleware.jar "$jar.part"
  mv "$jar.part" "$jar"
fi
install -D -m 644 "$jar" "$project/target/middleware/middleware.jar"
say "$project/target/middleware/middleware.jar ($(du -h "$jar" | cut -f1), $hash)"
