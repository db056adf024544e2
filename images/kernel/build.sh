#!/usr/bin/env bash
# Builds the lab's own User-Mode Linux kernel, as any user, into ~/.cache/vnet/kernels/HASH/ (linux, kernel.json).
#   build.sh [LOCK...]   the first of these sources that can be had; default: source.lock, then fallback.lock; status 4: none
# HASH covers everything that the kernel's bytes depend on: source, patch, configuration, compiler, flags. The same hash is the same
# file, byte for byte, wherever it is built; known-builds holds what others got. JOBS sets how many compilers run (default: all cores).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
base=${XDG_CACHE_HOME:-$HOME/.cache}/vnet
compiler=gcc-12 # another compiler, or another version of it, makes other bytes
flags=(ARCH=um "CC=$compiler" "HOSTCC=$compiler" KBUILD_BUILD_USER=vnet KBUILD_BUILD_HOST=lab KBUILD_BUILD_VERSION=1
  "KBUILD_BUILD_TIMESTAMP=Thu Jan 1 00:00:00 UTC 1970")

say() { printf 'kernel: %s\n' "$1"; }

fail() {
  say "$1" >&2
  exit 1
}

require_tools() {
  local tool missing=()
  for tool in "$compiler" make flex bison bc xz patch dpkg-deb apt-get; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  [ ${#missing[@]} -eq 0 ] || fail "${missing[*]}: not installed; apt-get install $compiler libc6-dev make flex bison bc xz-utils patch"
}

toolchain() { # one line; libc's files are linked into the kernel's start
  printf '%s, %s, libc6-dev %s' "$("$compiler" --version | head -n 1)" "$(LC_ALL=C ld --version | head -n 1)" \
    "$(dpkg-query -W -f '${Version}' libc6-dev)"
}

# What a kernel is made of, without comments. orchestrator/kernel/uml/recipe.py reads the same.
recipe() {
  { grep -v '^#' "$here/$1"; for part in $patch; do cat "$here/$part"; done; grep -v '^##' "$here/lab_defconfig"; } | sha256sum | cut -c1-16
}

# The mirror is the one that this machine's own Debian packages come from.
mirror() { # debian or debian-security
  local sites
  sites=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | sort -u)
  grep -E "/$1/?\$" <<<"$sites" | head -n 1 || true
}

# Source packages are kept, so that a changed configuration needs no network.
fetch() { # DIRECTORY; sets deb
  deb=$base/sources/${package}_${version//:/%3a}_all.deb
  if ! sha256sum -c --quiet --status <<<"$sha256  $deb" 2>/dev/null; then
    say "fetching $package $version ($suite)"
    download "$1" || return 1
    mkdir -p "$base/sources"
    mv "$(echo "$1/$package"_*.deb)" "$deb"
  fi
  sha256sum -c --quiet <<<"$sha256  $deb" || fail "$deb: not what $lock names; remove it and build again: if it differs again, the mirror is not to be trusted"
}

# A package list of our own: the machine's lists and sources stay as they are, and no root is needed.
download() { # DIRECTORY
  local site apt
  site=$(mirror "$archive")
  [ -n "$site" ] || { say "apt's sources name no mirror of $archive; add one to /etc/apt"; return 1; }
  mkdir -p "$1/lists/partial" "$1/archives/partial"
  chmod 755 "$1"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $suite main" >"$1/sources"
  apt=(apt-get -qq -o "Dir::Etc::sourcelist=$1/sources" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$1/lists"
    -o "Dir::Cache=$1" -o APT::Sandbox::User="$(id -un)")
  "${apt[@]}" update && (cd "$1" && "${apt[@]}" download "$package=$version")
}

compile() { # DIRECTORY; everything that could differ between two machines or two users is fixed here
  local source=$1/source refused make part
  dpkg-deb -x "$deb" "$1/package"
  mkdir "$source"
  tar -xJf "$1/package/usr/src/$package.tar.xz" -C "$source" --strip-components=1 --exclude='*/Documentation/*/*' --exclude='*/tools/testing/*'
  for part in $patch; do patch -s -d "$source" -p1 <"$here/$part"; done
  grep -v '^##' "$here/lab_defconfig" >"$source/arch/um/configs/lab_defconfig"
  make=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "HOME=$1" LC_ALL=C TZ=UTC nice -n 19 make -C "$source" -s "${flags[@]}")
  "${make[@]}" lab_defconfig
  refused=$(missing_options "$source/.config" | grep -vxF "${without:-none}" || true)
  [ -z "$refused" ] || fail "lab_defconfig: this source does not take $(echo $refused); look for what the options depend on"
  "${make[@]}" -j"${JOBS:-$(nproc)}" linux
  strip "$source/linux"
}

# Options that the file sets and the configuration has otherwise: a renamed option must not go unnoticed.
missing_options() { # .config
  grep -E '^CONFIG_[A-Z0-9_]+=' "$here/lab_defconfig" | grep -vxFf "$1" || true
  grep -E '^# CONFIG_.* is not set' "$here/lab_defconfig" | awk '{print $2"="}' | while read -r option; do grep "^$option" "$1" || true; done
}

keep() { # BINARY
  local sum known
  sum=$(sha256sum "$1" | cut -d ' ' -f 1)
  known=$(awk -v hash="$hash" '$1 == hash {print $2}' "$here/known-builds")
  [ -z "$known" ] || [ "$known" = "$sum" ] || fail "the bytes (sha256 $sum) are not those of known-builds ($known) though every input is the same; labs would not repeat across machines"
  say "sha256 $sum: $([ -n "$known" ] && echo "the same as in known-builds" || echo "not in known-builds, not compared (add: $hash $sum)")"
  mkdir -p "$base/kernels/$hash"
  printf '{"recipe": "%s", "source": "%s %s", "patch": "%s", "toolchain": "%s", "sha256": "%s"}\n' \
    "$(recipe "$lock")" "$package" "$version" "$patch" "$tools" "$sum" >"$base/kernels/$hash/kernel.json"
  install -m 755 "$1" "$base/kernels/$hash/linux.part"
  mv "$base/kernels/$hash/linux.part" "$base/kernels/$hash/linux"
}

choose() { # LOCK; sets what it names, hash, result
  lock=$1 without=
  . "$here/$lock"
  hash=$({ recipe "$lock"; echo "$tools"; echo "${flags[@]}"; } | sha256sum | cut -c1-16)
  result=$base/kernels/$hash/linux
}

told() { # the last words: what there is now
  touch "$result" # the newest is preferred
  say "$result ($("$result" --version))"
  [ "${patch%% *}" = lab.patch ] || say "this is the fallback, for real time only, and by ptrace, about five times slower: --time virtual needs the source of source.lock"
}

main() {
  local locks=("$@")
  [ ${#locks[@]} -gt 0 ] || locks=(source.lock fallback.lock)
  require_tools
  tools=$(toolchain)
  work=$(mktemp -d "${TMPDIR:-/var/tmp}/vnet-kernel.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  for lock in "${locks[@]}"; do
    choose "$lock"
    if [ ! -x "$result" ]; then
      fetch "$work/fetch" || { say "$lock: $package $version cannot be had from $suite; apt says why above"; continue; }
      say "building $package $version with $compiler (about 5 minutes of two cores)"
      compile "$work"
      keep "$work/source/linux"
    fi
    told
    return
  done
  say "no source can be had. Labs still run in Debian's user-mode-linux, in real time only (apt-get install user-mode-linux kmod). Write a version that the suites have, and its SHA-256, into source.lock, build, and run the tests marked uml" >&2
  exit 4 # as vnet's: this machine cannot
}

[ "${BASH_SOURCE[0]}" != "$0" ] || main "$@" # images/guest/kernel.sh takes its functions
