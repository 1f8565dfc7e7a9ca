#!/usr/bin/env bash
set -euo pipefail
trap 'echo "cleaning up (status $?)"' EXIT
log() { printf '[%s] %s\n' "$1" "${*:2}" >&2; }
workdir=$(mktemp -d)
for name in alpha beta "gamma delta"; do
  mkdir -p "$workdir/$name"
  echo "${name^^}" > "$workdir/$name/out.txt"
done
find "$workdir" -name '*.txt' -printf '%P\n' | sort
cat "$workdir"/*/out.txt
log INFO done
[[ -f "$workdir/none" ]] && echo "there" || echo "not there"
rm -rf "$workdir"
grep -q nothing /dev/null
echo "never reached"
