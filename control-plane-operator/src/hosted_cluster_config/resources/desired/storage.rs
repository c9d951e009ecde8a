//! Configuration of storage operators, and what storage needs in the cluster.

use serde_json::json;

use super::input::Input;
use super::object::{Desired, Object, service_account, with_spec};

const API: &str = "operator.openshift.io/v1";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    if input.has_managed_storage() {
        let mut add = |kind, name| {
            let spec = json!({
                "logLevel": "Normal",
                "operatorLogLevel": "Normal",
                "managementState": "Managed",
            });
            desired.add(Object::merge(with_spec(API, kind, "", name, spec)));
        };
        add("CSISnapshotController", "cluster");
        add("Storage", "cluster");
        for driver in drivers(input) {
            add("ClusterCSIDriver", driver);
        }
    }
    let recycler = service_account("openshift-infra", "pv-recycler-controller");
    desired.add(Object::create(recycler));
}

fn drivers(input: &Input<'_>) -> &'static [&'static str] {
    match input.platform() {
        "AWS" => &["ebs.csi.aws.com"],
        "OpenStack" => &["cinder.csi.openstack.org", "manila.csi.openstack.org"],
        "Azure" if !input.is_managed_azure() => &["disk.csi.azure.com", "file.csi.azure.com"],
        _ => &[],
    }
}
