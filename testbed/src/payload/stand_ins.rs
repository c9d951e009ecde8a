//! Images of programs that are not available: one stand-in, under the names with which components start their programs.

use anyhow::Result;

use super::base;
use crate::images::{Archive, Contents, File};
use crate::openshift::Definitions;

/// The one program.
const STAND_IN: &str = "/usr/bin/stand-in";

/// What `authentication-operator render` writes: the API server's pod applies it.
const RENDERED: &str = "/usr/share/render";

/// The programs of an image, by the paths under which components start them.
type Programs = (&'static str, &'static [&'static str]);

/// Images whose programs are started by name.
const NAMED: [Programs; 33] = [
    (
        "aws-cloud-controller-manager",
        &["/bin/aws-cloud-controller-manager"],
    ),
    (
        "aws-node-termination-handler",
        &["/usr/bin/node-termination-handler"],
    ),
    (
        "aws-pod-identity-webhook",
        &["/usr/bin/aws-pod-identity-webhook"],
    ),
    (
        "azure-cloud-controller-manager",
        &["/bin/azure-cloud-controller-manager"],
    ),
    (
        "cloud-credential-operator",
        &["/usr/bin/cloud-credential-operator"],
    ),
    (
        "cluster-authentication-operator",
        &["/usr/bin/authentication-operator"],
    ),
    (
        "cluster-csi-snapshot-controller-operator",
        &["/usr/bin/csi-snapshot-controller-operator"],
    ),
    ("cluster-dns-operator", &["/usr/bin/dns-operator"]),
    (
        "cluster-image-registry-operator",
        &["/usr/bin/cluster-image-registry-operator"],
    ),
    ("cluster-ingress-operator", &["/usr/bin/ingress-operator"]),
    ("cluster-machine-approver", &["/usr/bin/machine-approver"]),
    (
        "cluster-network-operator",
        &["/usr/bin/cluster-network-operator"],
    ),
    (
        "cluster-node-tuning-operator",
        &["/usr/bin/cluster-node-tuning-operator"],
    ),
    (
        "cluster-policy-controller",
        &["/usr/bin/cluster-policy-controller"],
    ),
    (
        "cluster-storage-operator",
        &["/usr/bin/cluster-storage-operator"],
    ),
    (
        "cluster-version-operator",
        &["/usr/bin/cluster-version-operator"],
    ),
    (
        "controlplane-pki-operator",
        &["/usr/bin/control-plane-pki-operator"],
    ),
    ("csi-external-attacher", &["/usr/bin/csi-attacher"]),
    ("csi-external-provisioner", &["/usr/bin/csi-provisioner"]),
    ("csi-external-resizer", &["/usr/bin/csi-resizer"]),
    ("csi-external-snapshotter", &["/usr/bin/csi-snapshotter"]),
    ("csi-livenessprobe", &["/usr/bin/livenessprobe"]),
    (
        "gcp-cloud-controller-manager",
        &["/bin/gcp-cloud-controller-manager"],
    ),
    ("kube-storage-version-migrator", &["/usr/bin/migrator"]),
    (
        "kubevirt-cloud-controller-manager",
        &["/bin/kubevirt-cloud-controller-manager"],
    ),
    ("kubevirt-csi-driver", &["/usr/bin/kubevirt-csi-driver"]),
    ("oauth-server", &["/usr/bin/oauth-server"]),
    (
        "openshift-controller-manager",
        &["/usr/bin/openshift-controller-manager"],
    ),
    (
        "openstack-cloud-controller-manager",
        &["/usr/bin/openstack-cloud-controller-manager"],
    ),
    (
        "powervs-cloud-controller-manager",
        &["/bin/ibm-cloud-controller-manager"],
    ),
    (
        "route-controller-manager",
        &["/usr/bin/route-controller-manager"],
    ),
    ("tools", &[]),
    ("coredns", &[]),
];

/// Images that components only pass on by reference, to programs that are stand-ins themselves.
const HANDED_ON: [&str; 62] = [
    "aws-ebs-csi-driver",
    "aws-ebs-csi-driver-operator",
    "azure-cluster-api-controllers",
    "azure-disk-csi-driver",
    "azure-disk-csi-driver-operator",
    "azure-file-csi-driver",
    "azure-file-csi-driver-operator",
    "cloud-network-config-controller",
    "cluster-cloud-controller-manager-operator",
    "container-networking-plugins",
    "csi-driver-manila",
    "csi-driver-manila-operator",
    "csi-driver-nfs",
    "csi-node-driver-registrar",
    "csi-snapshot-controller",
    "deployer",
    "docker-builder",
    "docker-registry",
    "egress-router-cni",
    "gcp-cluster-api-controllers",
    "gcp-pd-csi-driver",
    "gcp-pd-csi-driver-operator",
    "haproxy-router-haproxy28",
    "haproxy-router-haproxy32",
    "ibm-vpc-block-csi-driver",
    "ibm-vpc-block-csi-driver-operator",
    "ibmcloud-cluster-api-controllers",
    "keepalived-ipfailover",
    "kube-proxy",
    "kube-rbac-proxy",
    "metallb-frr",
    "multus-admission-controller",
    "multus-cni",
    "multus-networkpolicy",
    "multus-route-override-cni",
    "multus-whereabouts-ipam-cni",
    "must-gather",
    "network-interface-bond-cni",
    "network-metrics-daemon",
    "networking-console-plugin",
    "openstack-cinder-csi-driver",
    "openstack-cinder-csi-driver-operator",
    "openstack-cluster-api-controllers",
    "openstack-resource-controller",
    "ovirt-csi-driver",
    "ovirt-csi-driver-operator",
    "ovn-kubernetes",
    "pod",
    "powervs-block-csi-driver",
    "powervs-block-csi-driver-operator",
    "powervs-machine-controllers",
    "prom-label-proxy",
    "prometheus",
    "prometheus-operator",
    "rhel-coreos",
    "telemeter",
    "volume-data-source-validator",
    "vsphere-csi-driver",
    "vsphere-csi-driver-operator",
    "vsphere-csi-driver-syncer",
    "vsphere-problem-detector",
    "azure-workload-identity-webhook",
];

/// The image of all of them: one set of files, in which each program has its name.
pub(super) fn image(program: &File, definitions: &Definitions) -> Result<Archive> {
    let mut files = base::files()?;
    files.push(program.clone());
    let names = NAMED.iter().flat_map(|(_, programs)| programs.iter());
    files.extend(names.map(|name| File::link(*name, STAND_IN)));
    files.extend(definitions.of_operators(RENDERED)?);
    // The image registry operator's script reads the feature gates with it before it starts the program.
    files.push(File::script("/usr/bin/curl", "#!/bin/sh\nexit 0\n"));
    Archive::of(&Contents {
        entrypoint: STAND_IN.to_owned(),
        command: &[],
        files,
    })
}

/// The tags of a release that lead to a stand-in unless its payload has the program, and what each runs when its component
/// does not say.
pub(super) fn tags() -> impl Iterator<Item = (&'static str, &'static str)> {
    let named = NAMED
        .iter()
        .map(|(tag, programs)| (*tag, programs.first().copied().unwrap_or(STAND_IN)));
    named.chain(HANDED_ON.map(|tag| (tag, STAND_IN)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tags_are_unique() {
        let all: Vec<_> = tags().map(|(tag, _)| tag).collect();
        let once: BTreeSet<_> = all.iter().collect();
        assert_eq!(once.len(), all.len());
    }
}
