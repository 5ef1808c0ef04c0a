# shellcheck shell=bash
# A machine of a test's own, as far as names, network, files in /run and processes go. To be sourced,
# with the test's arguments. What runs in it ends with it: nothing can be left behind.
#
# own_machine TEST ARGUMENTS: runs the test again, inside. Skips it, with status 77, where that cannot be.
own_machine() {
  local apart=(unshare --mount --uts --net --pid --ipc --fork --kill-child=KILL --mount-proc)
  ((EUID == 0)) || skip "namespaces of network, names and mounts need root"
  command -v ip >/dev/null || skip "there is no ip (iproute2)"
  "${apart[@]}" sh -c 'ip link add near0 type veth peer name far0 && mount -t tmpfs tmpfs /run' >/dev/null 2>&1 ||
    skip "this kernel or container gives no namespaces, veth or mounts of one's own"
  exec env INSIDE_OWN_MACHINE=1 "${apart[@]}" bash "$@"
}

skip() {
  echo "skipped: $1"
  exit 77
}

# begin_machine NAME HOSTS_LINE...: its name, and what its /etc/hosts has. It has a network that leads nowhere, and a
# name server in it that never answers. (A neighbour is made up for it, as an unknown one would be an error at once.)
begin_machine() {
  mount -t tmpfs tmpfs /run
  mount -t tmpfs tmpfs /dev/shm # folders there have the number of their launcher, which means nothing outside
  export TMPDIR=/run
  hostname "$1"
  shift
  printf '%s\n' "$@" >/run/hosts
  echo 'nameserver 192.0.2.53' >/run/resolv.conf
  local file
  for file in hosts resolv.conf; do
    [[ -e /etc/$file ]] || : >"/etc/$file"
    mount --bind "/run/$file" "/etc/$file"
  done
  ip link set lo up
  ip link add near0 type veth peer name far0
  ip addr add 192.0.2.2/24 dev near0
  ip link set near0 up
  ip link set far0 up
  ip neigh add 192.0.2.53 lladdr 02:00:00:00:00:53 dev near0
}
