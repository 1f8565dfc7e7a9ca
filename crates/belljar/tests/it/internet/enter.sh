#!/usr/bin/env bash
# Runs a program in a small internet: a network namespace with one route, to a second one that holds
# servers at an address that counts as public, and the names of those servers. Nothing of it is left
# when the program ends.
#
#   enter.sh DIRECTORY PYTHON PROGRAM ARGUMENT…
#
# The directory gets the files of the servers: the authority of their certificates is
# DIRECTORY/authority.pem. As an ordinary user, the program runs as that user again.
set -euo pipefail

here="$(cd "$(dirname "$0")" && pwd)"
server=44.128.0.1
client=44.128.0.2

if [ "${1:-}" != --inside ]; then
  own=()
  [ "$(id -u)" = 0 ] || own=(--user --map-root-user)
  exec unshare "${own[@]}" --net --mount "$0" --inside "$(id -u)" "$(id -g)" "$@"
fi
user="$2" group="$3" directory="$4" python="$5"
shift 5

# Names come from the servers' namespace only, whatever this machine asks usually.
# As in many clusters, a search domain is tried first: every name beneath it leads to the servers.
printf 'nameserver %s\nsearch search.example.net\noptions ndots:5\n' "$server" >"$directory/resolv.conf"
echo "hosts: files dns" >"$directory/nsswitch.conf"
mount --bind "$directory/resolv.conf" /etc/resolv.conf
mount --bind "$directory/nsswitch.conf" /etc/nsswitch.conf

ip link set lo up
# They end when their input does, so also if this script is killed.
coproc SERVERS { exec unshare --net "$python" "$here/servers.py" "$directory" "$server"; }
read -r started <&"${SERVERS[0]}"
[ "$started" = started ]
ip link add client type veth peer name server
ip link set server netns "$SERVERS_PID"
ip address add "$client/24" dev client
ip link set client up
nsenter --net="/proc/$SERVERS_PID/ns/net" sh -c \
  "ip link set lo up && ip address add $server/24 dev server && ip link set server up"
echo >&"${SERVERS[1]}"
read -r ready <&"${SERVERS[0]}"
[ "$ready" = ready ]

if [ "$user" = 0 ]; then
  "$@"
else
  unshare --user --map-user="$user" --map-group="$group" "$@"
fi
