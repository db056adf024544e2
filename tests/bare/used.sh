#!/usr/bin/env bash
# used.sh VNET KERNEL: uses an installed vnet in an empty directory, with all commands that read its own files. Stops at the first error.
set -euo pipefail
vnet=${1:?which vnet} kernel=${2:?file of vnet images export}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export XDG_CACHE_HOME=$work/cache

quiet() { "$@" >said 2>&1 || { cat said >&2; return 1; }; }

"$vnet" --version
"$vnet" doctor >doctor || [ $? -eq 4 ] # what is missing here is not the question
! grep -E 'make (setup|kernel)|/work/' doctor
cat >plain.yaml <<'LAB'
name: plain
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  broker: {segment: lan, software: {mosquitto: {broker: mosquitto}}}
  meter: {segment: lan, software: {publish: {mqtt: {broker: broker, publish: {topic: a, qos: 1, rate: 10 /s}}}}}
run: {connect_interval: 100 ms, hold: 2 s}
LAB
sed 's/^run:/links: {wire: {between: [meter, lan], both: {profile: lte}}}\nrun:/' plain.yaml >delayed.yaml
quiet "$vnet" check delayed.yaml
quiet "$vnet" plan delayed.yaml
quiet "$vnet" explain nodes
quiet "$vnet" schema
printf 'nodes: [a, b]\ndefaults.device: frr\nlinks: [a-b]\n' >two.yml
quiet "$vnet" import netlab two.yml
printf 'from mininet.topolib import TreeNet\nTreeNet(depth=1, fanout=2)\n' >tree.py # run beside a recorder, a file of ours
quiet "$vnet" import mininet tree.py
quiet "$vnet" check tree.yaml
quiet "$vnet" run delayed.yaml --kernel fake --results fake
[ "$(id -u)" -ne 0 ] || quiet "$vnet" run plain.yaml --kernel host --results host
"$vnet" images import "$kernel"
quiet "$vnet" run delayed.yaml --kernel uml --results uml
quiet "$vnet" run delayed.yaml --time virtual --results virtual
for run in fake uml virtual; do
  run=$(echo $run/plain/*)
  rm -rf "$run/report"
  quiet "$vnet" report "$run"
  [ -s "$run/report/index.html" ]
done
"$vnet" serve --port 0 --results fake >address 2>&1 &
server=$!
until grep -qs 'http://' address; do kill -0 $server || { cat address >&2; exit 1; }; sleep 0.1; done
address=$(grep -o 'http://[^ ]*' address | head -n 1)
python3 -c 'import sys, urllib.request as u; assert b"<html" in u.build_opener(u.HTTPCookieProcessor()).open(sys.argv[1]).read()' "$address"
kill $server
wait $server || true
echo "used: $vnet as $(id -un): $(ls -d fake host uml virtual 2>/dev/null | tr '\n' ' ')and the page"
