# To be sourced: whether several hosts can be made on this machine.

# why_no_hosts: prints what is missing; nothing if all is there.
why_no_hosts() {
  if [ "$(id -u)" != 0 ]; then
    echo "only root can make network namespaces"
  elif ! timeout 10 unshare --net --uts --ipc --mount --pid --fork true 2>/dev/null; then
    echo "this kernel, or this container, does not let root make namespaces"
  elif ! timeout 10 unshare --net ip link add type veth 2>/dev/null; then
    echo "this kernel has no veth devices"
  elif ! timeout 10 unshare --net ip link add type bridge 2>/dev/null; then
    echo "this kernel has no bridges"
  fi
}
