#!/usr/bin/env bash
# deb.sh DIST: makes the Debian package vnet_VERSION_ARCHITECTURE.deb in DIST from the wheel there: a virtual environment in /opt/vnet with
# all Python packages, pinned as in requirements.lock, and /usr/bin/vnet. It fits the Debian that builds it: its Python and its libc.
set -euo pipefail
dist=$(realpath "${1:?directory with the wheel}")
project=$(cd "$(dirname "$0")/.." && pwd)
fail() { echo "deb: $*" >&2; exit 1; }

wheel=$(echo "$dist"/vnet_testbed-*.whl)
[ -f "$wheel" ] || fail "$dist: not one wheel of ours; run make wheel"
python=/usr/bin/python3 # the package depends on it
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "$python is older than 3.11; build on Debian 12 or newer"
version=$(basename "$wheel" | cut -d - -f 2)
series=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
next=3.$((${series#3.} + 1))
libc=$(basename "$wheel" | sed 's/.*manylinux_\([0-9]*\)_\([0-9]*\)_.*/\1.\2/')
needed="python3 (>= $series), python3 (<< $next), libc6 (>= $libc), libgcc-s1, iproute2, iputils-ping, kmod, tcpdump"
wanted="graphviz, libzmq5, mosquitto-clients, openssh-client, tshark, user-mode-linux"
# These packages start daemons when they are installed, so they are only suggested.
asked="iperf3, mosquitto, frr, rabbitmq-server, python3-pyftpdlib, dnsmasq-base, nftables, udhcpc, libvirt0, libvirt-daemon, libvirt-daemon-driver-qemu, qemu-system-x86, qemu-utils"

# The same tree gives the same bytes: dpkg-deb sets no file's time later than this.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$project" log -1 --format=%ct 2>/dev/null || stat -c %Y "$project/pyproject.toml")}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
chmod 755 "$work"
root=$work/root
place=$root/opt/vnet
mkdir -p "$root/DEBIAN" "$root/usr/bin" "$root/usr/share/doc/vnet"
"$python" -m venv --without-pip "$place"
sed -E 's/ *--hash=[^ ]*//; s/ *\\$//; /^ *(#|$)/d' "$project/requirements.lock" >"$work/pins"
# -g0, -s: libvirt's binding is compiled here; its debug data would name the build directory.
CFLAGS=-g0 LDFLAGS=-s "$project/.venv/bin/pip" --quiet --no-cache-dir --disable-pip-version-check --python "$place/bin/python" install --no-compile -c "$work/pins" "$wheel[vm,engines]"

# Removes references to the build directory from the environment.
find "$place/bin" -mindepth 1 ! -name 'python*' ! -name dask -delete # dask: a campaign's scheduler and workers
printf '#!/opt/vnet/bin/python\nfrom orchestrator.cli.main import main\n\nraise SystemExit(main())\n' >"$place/bin/vnet"
chmod 755 "$place/bin/vnet"
sed -i "s|$place|/opt/vnet|g" "$place/pyvenv.cfg" "$place/bin/dask"
rm -f "$place"/lib/python*/site-packages/vnet_testbed-*/direct_url.json
sed -i '\|^\.\./\.\./\.\./bin/|d; /direct_url\.json/d' "$place"/lib/python*/site-packages/*.dist-info/RECORD # with sums of what changed
"$place/bin/python" -m compileall -q --invalidation-mode unchecked-hash -s "$root" "$place/lib" || true # templates of others' tests
ln -s /opt/vnet/bin/vnet "$root/usr/bin/vnet"
documents=$root/usr/share/doc/vnet
cp "$project/README.md" "$documents/"
"$python" "$project/images/copyright.py" "$place"/lib/python*/site-packages >"$documents/copyright"
printf 'vnet (%s) stable; urgency=medium\n\n  * Built from the source tree; its history has the changes.\n\n -- vNET <vnet@vnet.invalid>  %s\n' \
  "$version" "$(LC_ALL=C date -uRd "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$documents/changelog.gz"
install -D -m 644 "$project/images/lintian-overrides" "$root/usr/share/lintian/overrides/vnet"
find "$place" -name '*.so*' -type f -exec sh -c 'for file; do [ -x "$file" ] && chmod a-x "$file"; done; true' sh {} +
ln -s "/opt/vnet/lib/python$series/site-packages/vnet/_carried/topologies" "$root/usr/share/doc/vnet/topologies"

architecture=$(dpkg --print-architecture)
cat >"$root/DEBIAN/control" <<CONTROL
Package: vnet
Version: $version
Architecture: $architecture
Maintainer: vNET <vnet@vnet.invalid>
Section: net
Priority: optional
Installed-Size: $(du -sk --apparent-size "$root" | cut -f 1)
Depends: $needed
Recommends: $wanted
Suggests: $asked
Description: testbed for networked software, with evidence
 One YAML file describes segments, nodes, links with impairments, software and
 captures; vNET builds it from real parts, runs it, and reports what it measured.
CONTROL
(cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
package=$dist/vnet_${version}_$architecture.deb
dpkg-deb --root-owner-group -Zzstd -z9 --build "$root" "$package" >/dev/null
ls -sh "$package"
"$project/.venv/bin/python" "$project/images/sbom.py" deb "$package" "$root"
