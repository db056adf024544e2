#!/usr/bin/env bash
# Runs make targets in a bare Debian: a root of debootstrap with make and certificates, Rust, and the last commit's files.
#
# root.sh [--keep DIR | --cached] TARGET...: runs each target in turn, then prints a table of results; status 1 if one failed.
#   --keep DIR  keeps the root in DIR; the next call copies the files again and uses the same root, without installing
#               everything again
#   --cached    unpacks the root from a kept archive, and keeps downloads and builds for the next call; CI does this
# `make` itself must install everything else that a target needs, as images/packages.sh lists it, or name what is missing.
#
# The root uses this machine's mirror, and its configuration of apt, pip and cargo (sources, certificates, resolver, variables), which is
# copied at run time. It sees this machine's Rust toolchain, read-only. Processes, mounts and host name are in namespaces of the root;
# the network is this machine's, for the registries. Needs root. SUITE: another Debian than bookworm.
set -euo pipefail
suite=${SUITE:-bookworm}
project=/srv/vnet
export HOME=${HOME:-/root}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vnet
kept=$cache/bare/$suite # of --cached
say() { echo "test-bare: $*"; }
fail() { say "$*" >&2; exit 1; }

sources() { # one line a component of the machine's own Debian mirrors, in the form of sources.list
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' | sort -u |
    awk -v s="$suite" '$4 == "Debian" && ($2 == s || index($2, s "-") == 1) && $2 !~ /backports|proposed/ {
      print "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] " $1, $2, $3 }'
}

mirror() {
  sources | awk -v s="$suite" '$4 == s { print $3; exit }'
}

make_root() { # DIR
  local log=$1.log
  [ -n "$(mirror)" ] || apt-get -qq update # lists of packages may never have been fetched here
  [ -n "$(mirror)" ] || fail "apt's sources name no Debian mirror with $suite: add one to /etc/apt/sources.list.d and run apt-get update"
  say "debootstrap $suite, with make and certificates"
  debootstrap --variant=minbase --include=make,ca-certificates "$suite" "$1" "$(mirror)" >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; rm -rf "$1"; fail "debootstrap failed; the whole log is $log"; }
  rm "$log" "$1"/var/cache/apt/archives/*.deb
}

# An archive of a root is used for the same sources and for a week at most, so that Debian's security updates get into it.
unpack_root() { # DIR
  local archive
  mkdir -p "$kept"
  archive=$kept/root-$({ sources; date +%G-W%V; declare -f make_root; } | sha256sum | cut -c1-16).tar
  exec 8<"$kept"
  flock 8
  if [ -f "$archive" ]; then
    mkdir "$1"
    tar -C "$1" -xf "$archive"
  else
    make_root "$1"
    rm -f "$kept"/root-*.tar
    tar -C "$1" -cf "$archive.part" .
    mv "$archive.part" "$archive"
  fi
  exec 8<&-
}

configure() { # DIR: as this machine finds its registries
  local file
  sources >"$1/etc/apt/sources.list"
  # Copies apt's keys, proxies and checks, but not the hooks of Docker or a desktop.
  cat /etc/apt/apt.conf.d/* | { grep -E '^ *(Acquire|APT::Sandbox)::.*;' || true; } >"$1/etc/apt/apt.conf.d/90machine"
  echo force-unsafe-io >"$1/etc/dpkg/dpkg.cfg.d/of-a-test" # a root that is thrown away need not survive a power cut
  for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt /etc/pip.conf ~/.config/pip/pip.conf ~/.cargo/config.toml; do
    [ ! -f "$file" ] || install -D -m 644 "$(realpath "$file")" "$1${file/#$HOME//root}"
  done
  printf '127.0.1.1 bare\n' >>"$1/etc/hosts" # as Debian's installer writes it
}

clone() { # DIR
  mkdir -p "$1$project"
  # Keeps the builds of earlier calls; removes files that the commit no longer has.
  find "$1$project" -mindepth 1 -maxdepth 1 ! -name .venv ! -name target ! -name '*.egg-info' -exec rm -rf {} +
  # Gives the files the time of this call, since cargo rebuilds files that are newer than its results.
  git -C "$here/../.." -c safe.directory='*' archive HEAD | tar -C "$1$project" -xm
}

# ---- the following runs inside the root's namespaces
mounts() { # DIR
  local device path
  mount --bind "$1" "$1"
  mount -t proc proc "$1/proc"
  mount --rbind /sys "$1/sys"
  mount -t tmpfs -o mode=755 run "$1/run"
  mount -t tmpfs -o mode=755 dev "$1/dev"
  for device in null zero full random urandom tty kvm net/tun; do
    [ -e "/dev/$device" ] || continue
    mkdir -p "$(dirname "$1/dev/$device")"
    touch "$1/dev/$device"
    mount --bind "/dev/$device" "$1/dev/$device"
  done
  # Makes loop devices, which let a file serve as a disk (mount -o loop): the kernel makes more of them as they are
  # used.
  mknod "$1/dev/loop-control" c 10 237
  for device in {0..15}; do mknod -m 660 "$1/dev/loop$device" b 7 "$device"; done
  mkdir "$1/dev/pts" "$1/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$1/dev/pts"
  mount -t tmpfs -o mode=1777 shm "$1/dev/shm"
  ln -s pts/ptmx "$1/dev/ptmx"
  ln -s /proc/self/fd "$1/dev/fd"
  read_only "$(rustc --print sysroot)" "$1/opt/rust"
  for path in ${PIP_FIND_LINKS:-}; do [ ! -d "$path" ] || read_only "$path" "$1$path"; done
}

read_only() { # FROM TO
  mkdir -p "$2"
  mount --bind "$1" "$2"
  mount -o remount,bind,ro "$2"
}

# Downloads of registries, and builds under the hash of their inputs. Results of this machine's own runs stay out: from its cache only the
# lab kernels, by their hash, and their sources are copied.
caches() {
  local name
  mkdir -p "$kept/vnet"
  for name in kernels sources; do
    mkdir -p "$kept/vnet/$name"
    [ ! -d "$cache/$name" ] || cp -an "$cache/$name/." "$kept/vnet/$name/"
  done
  local home=~root # the same in the bare Debian
  writable apt /var/cache/apt/archives
  writable pip "$home/.cache/pip"
  writable crates "$home/.cargo/registry"
  for name in kernels sources images apt; do writable "vnet/$name" "$home/.cache/vnet/$name"; done
  # Only one of two simultaneous calls uses cargo's builds: the other may have another commit, and would test the wrong build.
  mkdir -p "$kept/vnet/cargo"
  exec 7<"$kept/vnet/cargo"
  if flock --nonblock 7; then
    writable vnet/cargo "$home/.cache/vnet/cargo"
    writable vnet/mypy "$project/.mypy_cache" # by the hash of each file, as mypy compares them
    sources_as_old_as_known
  fi
  find "$kept/apt" "$kept/vnet/apt" -name '*.deb' -ctime +30 -delete
}

# Cargo rebuilds sources that are newer than its results. A source with the path and content of the previous call keeps its time there;
# all others get the time of this call.
sources_as_old_as_known() {
  local known=$kept/vnet/cargo/sources time
  [ -s "$known" ] || echo "0 none none" >"$known"
  (cd "$root$project" && find . \( -name '*.rs' -o -name 'Cargo.*' \) -type f -print0 | xargs -0 sha256sum) |
    awk -v now="$(date +%s)" 'NR == FNR { time[$2, $3] = $1; next }
      { print (($1, $2) in time ? time[$1, $2] : now), $1, $2 }' "$known" - >"$known.new"
  mv "$known.new" "$known"
  for time in $(awk '{ print $1 }' "$known" | sort -u); do
    awk -v time="$time" '$1 == time { print $3 }' "$known" | (cd "$root$project" && xargs touch -d "@$time")
  done
}

writable() { # KEPT PATH
  mkdir -p "$kept/$1" "$root$2"
  mount --bind "$kept/$1" "$root$2"
}

registries() { # one line a variable that says where registries are
  env | grep -E '^(PIP_|CARGO_(HTTP|NET|REGISTR|SOURCE)|SSL_CERT_|VNET_BENCH|(https?|no|all)_proxy=|(HTTPS?|NO|ALL)_PROXY=)'
}

furnish() { # and goes into it, for good: the root of a chroot can be left, and nodes would be within reach of this machine
  mounts "$root"
  [ -z "${CACHED:-}" ] || caches
  hostname bare
  mkdir -p "$root/outside"
  cd "$root"
  pivot_root . outside
  root=/
  umount --lazy /outside
  rmdir /outside
}

in_root() { # COMMAND...
  local registries
  mapfile -t registries < <(registries)
  env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin:/opt/rust/bin LANG=C.UTF-8 "${registries[@]}" "$@" </dev/null 7<&-
}

inside() { # DIR TARGET...
  root=$1
  shift
  furnish
  targets "$@"
}

targets() { # TARGET...: each in turn, then a line a target
  local target began status=0 results=()
  for target in "$@"; do
    began=$SECONDS
    say "make $target"
    if in_root make --no-print-directory -C "$project" $target; then # with its variables: "test-hil TESTS=..."
      results+=("$(printf '%-12s passed  %4d s' "$target" $((SECONDS - began)))")
    else
      results+=("$(printf '%-12s FAILED  %4d s' "$target" $((SECONDS - began)))") status=1
    fi
  done
  printf 'test-bare: %s\n' "${results[@]}"
  return $status
}

require() {
  [ "$(id -u)" -eq 0 ] || fail "a root of debootstrap, and its mounts, need root: run as root"
  command -v rustc >/dev/null || fail "rustc: not found; install Rust stable (https://rustup.rs): the root uses this machine's toolchain"
  command -v debootstrap >/dev/null || fail "debootstrap: not installed; apt-get install debootstrap"
}

# Makes a directory for a root, removed at the end; after kill -9 the next call removes it, since its lock is free.
temporary() { # sets place
  local left
  exec 8</var/tmp # of two calls one looks and makes at a time
  flock 8
  for left in /var/tmp/vnet-bare.*; do
    [ ! -d "$left" ] || ! flock --nonblock "$left" true || rm -rf --one-file-system "$left"
  done
  place=$(mktemp -d /var/tmp/vnet-bare.XXXXXX)
  exec 9<"$place"
  flock 9
  exec 8<&-
  trap 'rm -rf --one-file-system "$place"' EXIT
  trap 'exit 130' INT TERM HUP # once the command at hand has ended: it would write on
}

# A root's processes share a PID namespace and end with its first process; its mounts go with them. unshare ends after them.
enter() { # SCRIPT ARGUMENT...
  setpriv --pdeathsig KILL unshare --mount --pid --uts --ipc --fork --kill-child "$@" 9<&- &
  entered=$!
  trap leave INT TERM HUP
  wait $entered
}

leave() {
  kill -KILL $(cat "/proc/$entered/task/$entered/children") || true
  wait $entered || true
  exit 130
}

main() {
  place= # not local: what is done on exit comes after all functions
  case "${1:-}" in
    --keep) place=${2:?where the root is kept}; shift 2 ;;
    --cached) export CACHED=yes; shift ;;
  esac
  [ $# -gt 0 ] || fail "usage: root.sh [--keep DIR | --cached] TARGET...; name make targets"
  require
  if [ -n "$place" ]; then mkdir -p "$place"; else temporary; fi
  prepare
  enter "$here/root.sh" --inside "$root" "$@"
}

prepare() { # sets root
  root=$(realpath "$place")/root
  if [ -n "${CACHED:-}" ]; then unpack_root "$root"
  elif [ ! -d "$root" ]; then make_root "$root"; fi
  configure "$root"
  clone "$root"
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${BASH_SOURCE[0]}" != "$0" ]; then :; # fresh.sh takes its functions
elif [ "${1:-}" = --inside ]; then shift; inside "$@"
else main "$@"; fi
