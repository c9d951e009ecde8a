# The first process of a testbed's namespaces: it prepares them, says "ready", and ends everything in them as soon as its
# standard input ends, which it does when the testbed's owner goes, however that comes about.
#
# Arguments: the testbed's directory, its cgroup, the first node's address with its prefix, the network of Services.
set -eu
directory=$1 cgroup=$2 node=$3 services=$4

# Private first, so that nothing mounted here is seen outside; then shared, because the kubelet passes mounts on.
mount --make-rprivate /
mount --make-rshared /

# What programs write to fixed places lands in memory or in the testbed's directory.
mount -t tmpfs -o mode=755 tmpfs /run
for place in lib log; do
    mkdir -p "$directory/var/$place/upper" "$directory/var/$place/work"
    mount -t overlay overlay "/var/$place" \
        -o "lowerdir=/var/$place,upperdir=$directory/var/$place/upper,workdir=$directory/var/$place/work"
done

# The kubelet sets these for the whole machine. Here it finds and sets copies.
for tunable in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops \
    kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
    copy=/run/tunables/$tunable
    mkdir -p "${copy%/*}"
    cat "/proc/sys/$tunable" >"$copy"
    mount --bind "$copy" "/proc/sys/$tunable"
done

ip link set lo up
ip link add nodes type bridge
ip addr add "$node" dev nodes
ip link set nodes up
# A route is looked up before the address of a Service is translated.
ip route add "$services" dev nodes
echo 1 >/proc/sys/net/ipv4/ip_forward
# It may be there without being a module.
modprobe br_netfilter 2>/dev/null || true
echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables

echo ready
# As a shell, it also collects the processes that others leave to it.
while read -r _; do :; done

set +e
kill -KILL -1
ip link del outside
for _ in $(seq 100); do
    find /sys/fs/cgroup -depth -type d \( -path "*/$cgroup/*" -o -name "$cgroup" \) -exec rmdir {} + && break
    sleep 0.05
done 2>/dev/null
