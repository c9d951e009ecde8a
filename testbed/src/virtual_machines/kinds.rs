//! Stand-ins for the kinds of KubeVirt and of its importer: they accept any object.
//!
//! The real definitions come with operators that cannot be had here. What these have in common with them are the names,
//! the versions, and the subresource `status`.

use serde_json::Value;

use crate::crds;

/// A kind: its group, version, name and plural.
type Kind = (&'static str, &'static str, &'static str, &'static str);

const KINDS: [Kind; 3] = [
    ("kubevirt.io", "v1", "VirtualMachine", "virtualmachines"),
    (
        "kubevirt.io",
        "v1",
        "VirtualMachineInstance",
        "virtualmachineinstances",
    ),
    ("cdi.kubevirt.io", "v1beta1", "DataVolume", "datavolumes"),
];

/// The definitions of all of them.
pub fn definitions() -> Vec<Value> {
    KINDS.map(definition).to_vec()
}

fn definition((group, version, kind, plural): Kind) -> Value {
    crds::of_any_object(group, version, kind, plural, "Namespaced")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Resource;
    use crate::virtual_machines::{DATA_VOLUMES, INSTANCES, MACHINES};

    #[test]
    fn each_resource_of_the_stand_in_is_defined_with_a_status() {
        let all = definitions();
        for resource in [MACHINES, INSTANCES, DATA_VOLUMES] {
            let Resource {
                api_version,
                plural,
            } = resource;
            let (group, version) = api_version.split_once('/').unwrap();
            let name = format!("{plural}.{group}");
            let found = all.iter().find(|crd| crd["metadata"]["name"] == name);
            let served = &found.unwrap()["spec"]["versions"][0];
            assert_eq!(served["name"], version, "{name}");
            assert!(served["subresources"]["status"].is_object(), "{name}");
        }
    }
}
