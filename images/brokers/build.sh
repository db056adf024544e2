#!/bin/bash
# Installs brokers that Debian 12 does not have, each from its package registry in the version below, into
# ${VNET_BROKERS:-/usr/local/lib/vnet/brokers}/NAME, where the software kinds of these names look for them.
# Usage: images/brokers/build.sh [NAME ...]; without names all of them. What is there in that version stays.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
PLACE=${VNET_BROKERS:-/usr/local/lib/vnet/brokers}
declare -A VERSION=([rumqttd]=0.20.0 [mochi]=v2.7.9 [aedes]=1.2.0 [amqtt]=0.12.1 [moquette]=0.17 [nats]=v2.15.2 [mosquitto]=2.0.21)
declare -A NEEDS=([rumqttd]=cargo [mochi]=go [aedes]=npm [amqtt]=/usr/bin/python3 [moquette]=mvn [nats]=go [mosquitto]=apt-get)

fail() { echo "brokers: $1" >&2; exit 1; }

# Not --locked: its lock names a release of the crate metrics that present compilers refuse.
make_rumqttd() { cargo install --quiet --version "${VERSION[rumqttd]}" --root "$1" --target-dir "$1.target" rumqttd; rm -rf "$1.target" "$1"/.crates*; }

# The program that reads a configuration file is the module's cmd/docker. Its bytes are the same wherever it is built.
make_mochi() { mkdir -p "$1/bin"; GOBIN=$1/bin CGO_ENABLED=0 go install -trimpath -ldflags '-s -w' "github.com/mochi-mqtt/server/v2/cmd/docker@${VERSION[mochi]}"; mv "$1/bin/docker" "$1/bin/mochi"; }

make_nats() { mkdir -p "$1/bin"; GOBIN=$1/bin CGO_ENABLED=0 go install -trimpath -ldflags '-s -w' "github.com/nats-io/nats-server/v2@${VERSION[nats]}"; }

make_aedes() { mkdir -p "$1"; cp "$HERE"/aedes/package*.json "$1"; (cd "$1" && npm ci --silent --no-audit --no-fund --ignore-scripts); }

make_amqtt() { /usr/bin/python3 -m pip install --quiet --no-compile --require-hashes --root-user-action ignore --target "$1/site" -r "$HERE/amqtt.txt"; rm -rf "$1/site/bin"; }

make_moquette() { mkdir -p "$1"; mvn -q -f "$HERE/moquette/pom.xml" dependency:copy-dependencies -DoutputDirectory="$1/jars" -DincludeScope=runtime; }

# The release that Debian 13 has, for comparisons with Debian 12's 2.0.11: from Debian's source package, whose signature
# apt checks, with lists of its own beside the machine's.
make_mosquitto() {
  local work=$1.target mirror
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -1)
  [ -n "$mirror" ] || fail "mosquitto: apt knows no mirror of Debian; run apt-get update"
  mkdir -p "$work/lists" "$work/cache" "$work/source" "$1/bin"
  echo "deb-src $mirror trixie main" >"$work/sources.list"
  local apt=(apt-get -qq -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
  "${apt[@]}" update
  (cd "$work/source" && "${apt[@]}" source mosquitto >/dev/null)
  [ -d "$work/source/mosquitto-${VERSION[mosquitto]}" ] || fail "Debian 13 has another mosquitto now: $(ls "$work/source")"
  make -s -C "$work/source/mosquitto-${VERSION[mosquitto]}/src" WITH_CJSON=no WITH_SYSTEMD=no WITH_WEBSOCKETS=no WITH_WRAP=no WITH_DOCS=no mosquitto
  install -s "$work/source/mosquitto-${VERSION[mosquitto]}/src/mosquitto" "$1/bin/mosquitto"
  rm -rf "$work"
}

for name in "${@:-rumqttd mochi aedes amqtt moquette nats mosquitto}"; do
  for one in $name; do
    [ -n "${VERSION[$one]:-}" ] || fail "\"$one\" is not one of ${!VERSION[*]}"
    target=$PLACE/$one
    [ "$(cat "$target/version" 2>/dev/null)" = "${VERSION[$one]}" ] && continue
    command -v "${NEEDS[$one]}" >/dev/null || fail "$one needs ${NEEDS[$one]}, which is not installed"
    mkdir -p "$PLACE" || fail "cannot write to $PLACE; run this as root, or set VNET_BROKERS"
    new=$PLACE/.$one.$$
    trap 'rm -rf "$new" "$new.target"' EXIT
    echo "brokers: $one ${VERSION[$one]}" >&2
    "make_$one" "$new"
    echo "${VERSION[$one]}" >"$new/version"
    chmod -R a+rX "$new"
    rm -rf "$target"
    mv "$new" "$target"
  done
done
