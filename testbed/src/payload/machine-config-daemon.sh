#!/bin/sh
# Stands in for the machine-config-daemon, in the part that upgrades a node where it is: it keeps to the protocol by which
# the hosted cluster's operator leads it, and does to the node what the new payload says, as `ignite` does it at the first
# boot: files and units, and the kernel arguments and the like of the MachineConfig that is among the files. It does not boot
# the node: the kubelet begins again, with its new files.
set -eu

node='' root='' kubeconfig='' wanted=''
for argument; do
    case $argument in
    --node-name=*) node=${argument#*=} ;;
    --root-mount=*) root=${argument#*=} ;;
    --kubeconfig=*) kubeconfig=${argument#*=} ;;
    --desired-configmap=*) wanted=${argument#*=} ;;
    esac
done

prefix=machineconfiguration.openshift.io
target=$(cat "$wanted/hash")

said() {
    kubectl --kubeconfig="$kubeconfig" get node "$node" \
        --output="jsonpath={.metadata.annotations.machineconfiguration\.openshift\.io/$1}" || true
}

say() {
    until kubectl --kubeconfig="$kubeconfig" annotate --overwrite node "$node" "$@"; do
        sleep 1
    done
}

# Asks for something that somebody else does to the node, and waits for it.
ask() {
    say "$prefix/desiredDrain=$1"
    until [ "$(said lastAppliedDrain)" = "$1" ]; do
        sleep 1
    done
}

restart_kubelet() {
    for process in /proc/[0-9]*; do
        if [ "$(cat "$process/comm" 2>/dev/null)" = kubelet ]; then
            kill "${process#/proc/}"
        fi
    done
}

until [ "$(said desiredConfig)" = "$target" ]; do
    sleep 1
done
if [ "$(said currentConfig)" != "$target" ]; then
    say "$prefix/state=Working" "$prefix/reason="
    ask "drain-$target"
    base64 -d "$wanted/config" | gunzip >"$root/run/payload.json"
    cp /usr/bin/ignite "$root/run/ignite"
    if ! chroot "$root" /run/ignite /run/payload.json /run/units; then
        say "$prefix/state=Degraded" "$prefix/reason=the payload cannot be carried out"
        exit 1
    fi
    restart_kubelet
    say "$prefix/currentConfig=$target"
fi
ask "uncordon-$target"
say "$prefix/state=Done"
echo "machine-config-daemon: $node has $target"
