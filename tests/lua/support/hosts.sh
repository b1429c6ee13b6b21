# Two hosts on one machine: network namespaces with names and addresses of their own, and a link between them that is
# shaped where the kernel can. For tests/lua/dist/hosts_spec.lua: . hosts.sh FOLDER, then `on a COMMAND`, `on b COMMAND`.
# Status 77 where namespaces are not permitted.

folder=$1
a=trinity-$$-a b=trinity-$$-b

leave() {
  for n in $a $b; do
    for p in $(ip netns pids $n 2>/dev/null); do kill -9 $p 2>/dev/null; done
    ip netns del $n 2>/dev/null
  done
}
trap leave EXIT
trap 'exit 1' INT TERM

ip netns add $a 2>/dev/null && ip netns add $b 2>/dev/null &&
  ip link add va netns $a type veth peer name vb netns $b 2>/dev/null || { echo 'no namespaces here'; exit 77; }
ip -n $a addr add 10.77.0.1/24 dev va; ip -n $b addr add 10.77.0.2/24 dev vb
for n in $a $b; do ip -n $n link set lo up; done
ip -n $a link set va up; ip -n $b link set vb up
for side in "$a va" "$b vb"; do
  set -- $side
  ip netns exec $1 tc qdisc add dev $2 root tbf rate 1gbit burst 256k latency 50ms 2>/dev/null
done
printf '127.0.0.1 localhost\n10.77.0.1 host-a\n10.77.0.2 host-b\n' > $folder/hosts

# on SIDE COMMAND: on that host. HOSTS names another file in place of /etc/hosts.
on() {
  side=$1; shift
  eval n=\$$side
  ip netns exec $n unshare -u -m sh -c 'hostname host-'$side'; mount --bind "$0" /etc/hosts; exec "$@"' \
    "${HOSTS:-$folder/hosts}" "$@"
}
cut_link() { ip -n $a link set va down; }
mend_link() { ip -n $a link set va up; }
vanish() { eval n=\$$1; for p in $(ip netns pids $n); do kill -9 $p; done; ip -n $n link set v$1 down; }
