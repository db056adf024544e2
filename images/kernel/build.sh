#!/usr/bin/env bash
# Builds the lab's own User-Mode Linux kernel, as any user, into ~/.cache/vnet/kernels/HASH/linux.
# HASH covers what the kernel is made of: source.lock, lab.patch and lab_defconfig, without their comments, so that an
# unchanged kernel builds once. JOBS sets how many compilers run (default: all cores); it runs at lowest priority.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
. "$here/source.lock"
hash=$(cd "$here" && { grep -v '^#' source.lock; cat lab.patch; grep -v '^##' lab_defconfig; } | sha256sum | cut -c1-16)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vnet/kernels
result=$cache/$hash/linux

fail() {
  printf 'kernel: %s\n' "$1" >&2
  exit 1
}

require_tools() {
  local missing=()
  for tool in gcc make flex bison bc xz patch dpkg-deb apt-get; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  [ ${#missing[@]} -eq 0 ] || fail "${missing[*]}: not installed; apt-get install gcc make flex bison bc libelf-dev libssl-dev xz-utils patch"
  [ -e /usr/include/libelf.h ] || fail "libelf.h: not installed; apt-get install libelf-dev"
}

# The mirror is the one that this machine's own Debian packages come from.
mirror() {
  apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -E '/debian/?$' | sort -u | head -n 1
}

# A package list of our own: the machine's lists and sources stay as they are, and no root is needed.
fetch() { # DIRECTORY
  local site apt
  site=$(mirror)
  [ -n "$site" ] || fail "apt's sources name no Debian mirror (a URI that ends in /debian); add one to /etc/apt"
  mkdir -p "$1/lists/partial" "$1/archives/partial"
  chmod 755 "$1"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $suite main" >"$1/sources"
  apt=(apt-get -q -o "Dir::Etc::sourcelist=$1/sources" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$1/lists"
    -o "Dir::Cache=$1" -o APT::Sandbox::User="$(id -un)")
  "${apt[@]}" update || fail "the package list of $suite cannot be read; apt says why above"
  (cd "$1" && "${apt[@]}" download "$package=$version") ||
    fail "source.lock: version $version of $package is no longer in $suite; write the present version and its SHA-256 there, build, and run the tests marked uml"
  echo "$sha256  $(echo "$1"/"$package"_*.deb)" | sha256sum -c --quiet || fail "source.lock: sha256 does not match what the mirror gave"
}

build() { # DIRECTORY
  local source=$1/source
  dpkg-deb -x "$1"/"$package"_*.deb "$1/package"
  mkdir "$source"
  tar -xJf "$1/package/usr/src/$package.tar.xz" -C "$source" --strip-components=1
  patch -d "$source" -p1 <"$here/lab.patch"
  grep -v '^##' "$here/lab_defconfig" >"$source/arch/um/configs/lab_defconfig"
  local make=(nice -n 19 make -C "$source" ARCH=um -s KBUILD_BUILD_USER=vnet KBUILD_BUILD_HOST=lab)
  "${make[@]}" lab_defconfig
  refused=$(missing_options "$source/.config")
  [ -z "$refused" ] || fail "lab_defconfig: this source does not take $(echo $refused); look for what the options depend on"
  "${make[@]}" -j"${JOBS:-$(nproc)}" linux
  strip "$source/linux"
}

# Options that the file asks for and the configuration does not have: a renamed option must not go unnoticed.
missing_options() { # .config
  grep -E '^CONFIG_[A-Z0-9_]+=' "$here/lab_defconfig" | grep -vxFf "$1" || true
}

main() {
  if [ -x "$result" ]; then
    echo "kernel: $result is there already ($("$result" --version))"
    return
  fi
  require_tools
  work=$(mktemp -d "${TMPDIR:-/var/tmp}/vnet-kernel.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "kernel: fetching $package $version"
  fetch "$work"
  echo "kernel: building (about 8 minutes of two cores)"
  build "$work"
  mkdir -p "$cache/$hash"
  cp "$work/source/linux" "$cache/$hash/linux.part"
  chmod 755 "$cache/$hash/linux.part"
  mv "$cache/$hash/linux.part" "$result"
  echo "kernel: $result ($("$result" --version))"
}

main
