#!/usr/bin/env bash
# Builds the guest kernel of builtin-tiny, as any user, into ~/.cache/vnet/kernels/guest-HASH/vmlinux; its path is the last line of
# the output. HASH covers source, configuration and compiler. The source is that of the lab kernel; JOBS sets how many compilers run.
set -euo pipefail

guest=$(cd "$(dirname "$0")" && pwd)
. "$guest/../kernel/build.sh" # its functions: fetch, require_tools, toolchain, say, fail
lock=source.lock
. "$guest/../kernel/$lock"
flags=(ARCH=x86_64 "CC=$compiler" "HOSTCC=$compiler" KBUILD_BUILD_USER=vnet KBUILD_BUILD_HOST=guest KBUILD_BUILD_VERSION=1
  "KBUILD_BUILD_TIMESTAMP=Thu Jan 1 00:00:00 UTC 1970")

wanted() { grep -v '^##' "$guest/tiny.config" | grep .; }

# Options that the file sets and the configuration has otherwise.
refused() { # .config
  wanted | grep '=' | grep -vxFf "$1" || true
  wanted | awk '/is not set/ {print $2 "="}' | while read -r option; do grep "^$option" "$1" || true; done
}

compile_guest() { # DIRECTORY
  local source=$1/source make bad
  dpkg-deb -x "$deb" "$1/package"
  mkdir "$source"
  tar -xJf "$1/package/usr/src/$package.tar.xz" -C "$source" --strip-components=1 --exclude='*/Documentation/*/*' --exclude='*/tools/testing/*'
  make=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "HOME=$1" LC_ALL=C TZ=UTC nice -n 19 make -C "$source" -s "${flags[@]}")
  wanted >"$1/wanted"
  "${make[@]}" KCONFIG_ALLCONFIG="$1/wanted" allnoconfig
  bad=$(refused "$source/.config")
  [ -z "$bad" ] || fail "tiny.config: this source does not take $(echo $bad); look for what the options depend on"
  "${make[@]}" -j"${JOBS:-$(nproc)}" vmlinux
  strip "$source/vmlinux"
}

main_guest() {
  local work hash result
  require_tools
  echo '#include <gelf.h>' | "$compiler" -E - >/dev/null 2>&1 || fail "gelf.h: not installed; apt-get install libelf-dev"
  hash=$({ grep -v '^#' "$guest/../kernel/$lock"; wanted; toolchain; echo "${flags[@]}"; } | sha256sum | cut -c1-16)
  result=$base/kernels/guest-$hash/vmlinux
  mkdir -p "$(dirname "$result")"
  exec 9>"$result.lock"
  flock 9 # who asks for the same kernel meanwhile waits for this one
  if [ ! -f "$result" ]; then
    work=$(mktemp -d "${TMPDIR:-/var/tmp}/vnet-guest-kernel.XXXXXX")
    trap "rm -rf '$work'" EXIT
    fetch "$work/fetch" || fail "$lock: $package $version cannot be had from $suite; apt says why above"
    say "building $package $version for guests"
    compile_guest "$work"
    cp "$work/source/vmlinux" "$result.part"
    mv "$result.part" "$result"
  fi
  echo "$result"
}

main_guest
