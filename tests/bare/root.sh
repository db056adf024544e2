#!/usr/bin/env bash
# Runs make targets in a bare Debian: a root of debootstrap with make and certificates, Rust, and a clean clone of the last commit.
#
# root.sh [--keep DIR] TARGET...: each target in turn, then a table of what came out; status 1 if one failed. With --keep the root
# stays in DIR, and the next call goes on in it with a fresh clone: for trying something again without installing all of it anew.
# Everything else that a target needs, `make` itself must install from what images/packages.sh names, or say clearly that it is missing.
#
# The mirror is the one that this machine's own apt uses. apt, pip and cargo are configured as on this machine (sources, certificates,
# resolver, variables): copied into the root at run time. The toolchain of Rust is this machine's, read-only. Processes, mounts and host
# name are namespaces of the root's own; the network is this machine's, for the registries. Needs root. SUITE: another Debian than bookworm.
set -euo pipefail
suite=${SUITE:-bookworm}
project=/srv/vnet
fail() { echo "test-bare: $*" >&2; exit 1; }

sources() { # one line a component of the machine's own Debian mirrors, in the form of sources.list
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' | sort -u |
    awk -v s="$suite" '$4 == "Debian" && ($2 == s || index($2, s "-") == 1) && $2 !~ /backports|proposed/ {
      print "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] " $1, $2, $3 }'
}

make_root() { # DIR
  local mirror log=$1.log
  mirror=$(sources | awk -v s="$suite" '$4 == s { print $3; exit }')
  [ -n "$mirror" ] || fail "apt's sources name no Debian mirror with $suite: add one to /etc/apt/sources.list.d and run apt-get update"
  echo "test-bare: debootstrap $suite, with make and certificates"
  debootstrap --variant=minbase --include=make,ca-certificates "$suite" "$1" "$mirror" >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; rm -rf "$1"; fail "debootstrap failed; the whole log is $log"; }
  rm "$log"
}

configure() { # DIR: as this machine finds its registries
  local file
  sources >"$1/etc/apt/sources.list"
  # What keys, proxies and checks apt is told of here; not Docker's or a desktop's hooks.
  cat /etc/apt/apt.conf.d/* | { grep -E '^ *(Acquire|APT::Sandbox)::.*;' || true; } >"$1/etc/apt/apt.conf.d/90machine"
  for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt /etc/pip.conf ~/.config/pip/pip.conf ~/.cargo/config.toml; do
    [ ! -f "$file" ] || install -D -m 644 "$(realpath "$file")" "$1${file/#$HOME//root}"
  done
}

clone() { # DIR
  rm -rf "$1.clone"
  git clone --quiet "$(git -C "$here" rev-parse --show-toplevel)" "$1.clone"
  rm -rf "$1.clone/.git"
  mkdir -p "$1$project"
  # What earlier calls have built stays; what the commit no longer has goes.
  find "$1$project" -mindepth 1 -maxdepth 1 ! -name .venv ! -name target ! -name '*.egg-info' -exec rm -rf {} +
  cp -a "$1.clone/." "$1$project/"
  rm -rf "$1.clone"
}

# ---- in namespaces of the root's own
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

registries() { # one line a variable that says where registries are
  env | grep -E '^(PIP_|CARGO_(HTTP|NET|REGISTR|SOURCE)|SSL_CERT_|VNET_BENCH|(https?|no|all)_proxy=|(HTTPS?|NO|ALL)_PROXY=)'
}

inside() { # DIR TARGET...
  local root=$1 target began status=0 results=() registries
  shift
  mounts "$root"
  hostname bare
  mapfile -t registries < <(registries)
  for target in "$@"; do
    began=$SECONDS
    echo "test-bare: make $target"
    if chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin:/opt/rust/bin LANG=C.UTF-8 "${registries[@]}" \
      make --no-print-directory -C "$project" $target; then # with its variables: "test-hil TESTS=..."
      results+=("$(printf '%-12s passed  %4d s' "$target" $((SECONDS - began)))")
    else
      results+=("$(printf '%-12s FAILED  %4d s' "$target" $((SECONDS - began)))") status=1
    fi
  done
  printf 'test-bare: %s\n' "${results[@]}"
  return $status
}

main() {
  place= # not local: what is done on exit comes after all functions
  if [ "${1:-}" = --keep ]; then place=${2:?where the root is kept}; shift 2; fi
  [ $# -gt 0 ] || fail "usage: root.sh [--keep DIR] TARGET...; name make targets"
  [ "$(id -u)" -eq 0 ] || fail "a root of debootstrap, and its mounts, need root: run as root"
  command -v debootstrap >/dev/null || fail "debootstrap: not installed; apt-get install debootstrap"
  command -v rustc >/dev/null || fail "rustc: not found; install Rust stable (https://rustup.rs): the root uses this machine's toolchain"
  if [ -n "$place" ]; then
    mkdir -p "$place"
  else
    place=$(mktemp -d /var/tmp/vnet-bare.XXXXXX)
    trap 'rm -rf --one-file-system "$place"' EXIT
  fi
  root=$(realpath "$place")/root
  [ -d "$root" ] || make_root "$root"
  configure "$root"
  clone "$root"
  unshare --mount --pid --uts --ipc --fork --kill-child "$here/root.sh" --inside "$root" "$@"
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${BASH_SOURCE[0]}" != "$0" ]; then :; # fresh.sh takes its functions
elif [ "${1:-}" = --inside ]; then shift; inside "$@"
else main "$@"; fi
