#!/bin/bash
# Runs this project's tests of NICs inside the nested machine, as root, on a full kernel. checks.sh [FILE...]
cd /project || exit 1
export PYTHONPATH=/project PYTHONUNBUFFERED=1 VNET_HIL=1 XDG_CACHE_HOME=/project/cache
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
ulimit -l unlimited; ulimit -n 65536
mkdir -p /out/results
exec python3 -m pytest -p no:cacheprovider -vra -o addopts= -o timeout=900 -o junit_family=xunit1 --durations=15 --junit-xml=/out/junit.xml "${@:-tests/hil}"
