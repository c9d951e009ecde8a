# The first process of a machine of the fake cloud: it prepares the machine, carries its user data out, and runs what that
# enables, again and again, as long as the machine lives.
#
# Arguments: the machine's directory, its host name, the program that carries user data out.
set -eu
directory=$1 name=$2 ignite=$3

# Nothing that is mounted here is seen by others; what the kubelet mounts is seen by its containers.
mount --make-rprivate /
mount --make-rshared /

# A machine has its own files, over those of the one that it is really on.
mount -t tmpfs -o mode=755 tmpfs /run
for place in etc usr opt; do
    mkdir -p "$directory/$place/upper" "$directory/$place/work"
    mount -t overlay overlay "/$place" \
        -o "lowerdir=/$place,upperdir=$directory/$place/upper,workdir=$directory/$place/work"
done
for place in lib log; do
    mkdir -p "$directory/var/$place"
    mount --bind "$directory/var/$place" "/var/$place"
done

# The kubelet sets these for the whole machine. Here it finds copies with the values that it wants.
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    tunable=${setting%%=*}
    mkdir -p "/run/tunables/${tunable%/*}"
    echo "${setting#*=}" >"/run/tunables/$tunable"
    mount --bind "/run/tunables/$tunable" "/proc/sys/$tunable"
done
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables

hostname "$name"
echo "$name" >/etc/hostname
rm -f /etc/resolv.conf
cp "$directory/resolv.conf" /etc/resolv.conf

mkdir -p /run/metadata /run/netns /run/containerd /run/crio /run/units /etc/kubernetes /var/lib/kubelet
cp "$directory/afterburn" /run/metadata/afterburn
cp "$directory/kubelet-env" /etc/kubernetes/kubelet-env
for program in "$directory"/bin/*; do
    ln -sf "$(readlink "$program")" "/usr/bin/${program##*/}"
done
ln -s /run/containerd/containerd.sock /run/crio/crio.sock

containerd --config="$directory/containerd.toml" --log-level=warn &

export MACHINE_KUBELET_FLAGS="--config-dir=$directory/kubelet.d"
"$ignite" "$directory/user-data" /run/units

until [ -S /run/containerd/containerd.sock ]; do sleep 0.1; done

# What ends comes before what stays.
for unit in /run/units/1-*; do
    if [ -e "$unit" ]; then
        echo "machine: running ${unit##*/}"
        "$unit" || echo "machine: ${unit##*/} failed ($?)"
    fi
done
for unit in /run/units/2-*; do
    [ -e "$unit" ] || continue
    while :; do
        echo "machine: starting ${unit##*/}"
        "$unit" || echo "machine: ${unit##*/} ended ($?)"
        sleep 2
    done &
done
wait
