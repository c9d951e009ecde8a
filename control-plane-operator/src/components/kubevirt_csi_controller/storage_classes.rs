//! Which storage classes of the infrastructure cluster the guest may use, as the driver's configuration.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::platform::kubevirt::{
    KubevirtManualStorageDriver, KubevirtStorageDriverSpec, KubevirtStorageDriverType,
};
use serde_json::{Value, json};

/// The classes of a group: snapshots work between them.
#[derive(Debug, Default)]
struct Group<'a> {
    storage: Vec<&'a str>,
    snapshots: Vec<&'a str>,
}

/// Returns the configuration. A serializer writes it, so that no name of a class can add settings.
pub(super) fn enforcement(driver: Option<&KubevirtStorageDriverSpec>) -> Value {
    let type_ = driver.map_or(KubevirtStorageDriverType::Default, |driver| driver.type_);
    match type_ {
        KubevirtStorageDriverType::Default => json!({ "allowDefault": true, "allowAll": false }),
        KubevirtStorageDriverType::None => json!({ "allowDefault": false, "allowAll": false }),
        KubevirtStorageDriverType::Manual => {
            let none = KubevirtManualStorageDriver::default();
            let manual = driver.and_then(|driver| driver.manual.as_ref());
            listed(manual.unwrap_or(&none))
        }
    }
}

fn listed(manual: &KubevirtManualStorageDriver) -> Value {
    let groups = groups(manual);
    let mut allowed: Vec<_> = groups.values().flat_map(|group| &group.storage).collect();
    allowed.sort_unstable();
    // Groups with storage classes come first.
    let (with, without): (Vec<_>, Vec<_>) =
        groups.values().partition(|group| !group.storage.is_empty());
    let mapping = with.into_iter().chain(without).map(|group| {
        json!({ "storageClasses": names(&group.storage), "volumeSnapshotClasses": names(&group.snapshots) })
    });
    json!({
        "allowAll": false,
        "allowList": allowed,
        "storageSnapshotMapping": mapping.collect::<Vec<_>>(),
    })
}

/// Groups by name, with sorted classes.
fn groups(manual: &KubevirtManualStorageDriver) -> BTreeMap<&str, Group<'_>> {
    let mut groups: BTreeMap<_, Group<'_>> = BTreeMap::new();
    for class in &manual.storage_class_mapping {
        let group = groups
            .entry(class.group.as_deref().unwrap_or_default())
            .or_default();
        group.storage.push(&class.infra_storage_class_name);
    }
    for class in &manual.volume_snapshot_class_mapping {
        let group = groups
            .entry(class.group.as_deref().unwrap_or_default())
            .or_default();
        group
            .snapshots
            .push(&class.infra_volume_snapshot_class_name);
    }
    for group in groups.values_mut() {
        group.storage.sort_unstable();
        group.snapshots.sort_unstable();
    }
    groups
}

/// The driver reads null as no classes.
fn names(classes: &[&str]) -> Value {
    if classes.is_empty() {
        return Value::Null;
    }
    json!(classes)
}
