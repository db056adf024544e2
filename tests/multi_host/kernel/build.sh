#!/usr/bin/env bash
# Builds the kernel of tests' hosts into ~/.cache/vnet/hosts/HASH/linux; its path is the last line of the output. It
# is the lab kernel with host.config beside it: a network card (UML's vector driver), which the kernel of labs must
# not have, since its bytes and its figures are compared. JOBS sets how many compilers run.
set -euo pipefail

tests=$(cd "$(dirname "$0")" && pwd)
kernel=$(cd "$tests/../../../images/kernel" && pwd)
. "$kernel/build.sh" # its functions: choose, fetch, compile, require_tools, toolchain, say, fail

main_host() {
  local tools work hash result
  require_tools
  tools=$(toolchain)
  work=$(mktemp -d "${TMPDIR:-/var/tmp}/vnet-host-kernel.XXXXXX")
  trap "rm -rf '$work'" EXIT
  mkdir "$work/recipe"
  cp "$kernel"/{source.lock,lab.patch} "$work/recipe"
  cat "$kernel/lab_defconfig" "$tests/host.config" >"$work/recipe/lab_defconfig"
  here=$work/recipe # where the functions find what a kernel is made of
  choose source.lock
  result=$base/hosts/$hash/linux
  if [ ! -x "$result" ]; then
    fetch "$work/fetch" || fail "source.lock: $package $version cannot be had from $suite; apt says why above"
    say "building $package $version for tests' hosts (about 5 minutes of two cores)"
    compile "$work"
    install -D -m 755 "$work/source/linux" "$result.part"
    mv "$result.part" "$result"
  fi
  echo "$result"
}

main_host
