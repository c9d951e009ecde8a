//! The name of the machines' template: the one that they have while it stands for the desired machine.

use api::hypershift::v1beta1::platform::PlatformType;
use serde_json::{Map, Value};

use super::workload;
use crate::node_pool::facts::Facts;
use crate::node_pool::observed;
use crate::platform::kubevirt;
use crate::platform::machines::{Inputs, Machine, Template};

/// Fields of machines that mean the same with this value as without it.
const DEFAULTS: [(PlatformType, &str, &str); 8] = [
    (
        PlatformType::Aws,
        "/cloudInit/secureSecretsBackend",
        "secrets-manager",
    ),
    (
        PlatformType::Aws,
        "/instanceMetadataOptions/httpEndpoint",
        "enabled",
    ),
    (
        PlatformType::Aws,
        "/instanceMetadataOptions/instanceMetadataTags",
        "disabled",
    ),
    (PlatformType::Aws, "/marketType", "OnDemand"),
    (PlatformType::Aws, "/tenancy", "default"),
    (
        PlatformType::Azure,
        "/image/marketplace/thirdPartyImage",
        "false",
    ),
    (PlatformType::Azure, "/osDisk/cachingType", "None"),
    (PlatformType::Azure, "/osDisk/osType", "Linux"),
];
/// Fields without a meaning: on Azure no user has the private key.
const IGNORED: [(PlatformType, &str); 1] = [(PlatformType::Azure, "/sshPublicKey")];

/// The template of a pool's machines.
pub(crate) fn template(facts: &Facts, machine: &Machine, inputs: &Inputs<'_>) -> Template {
    let own = machine.template(inputs);
    match kept(facts, machine, &own) {
        Some((name, spec)) => machine.kept_template(inputs, name, spec),
        None => earlier(facts, inputs).unwrap_or(own),
    }
}

/// The template of an earlier version of this operator, if machines are made from it: one that the pool is being rolled out
/// to when this version begins, which the annotation of the pool does not name yet.
fn earlier(facts: &Facts, inputs: &Inputs<'_>) -> Option<Template> {
    if facts.pool.spec.platform.type_ != PlatformType::KubeVirt {
        return None;
    }
    let name = &workload(facts)?.template;
    let template = kubevirt::machines::earlier(inputs)?.template(inputs);
    (template.name == *name).then_some(template)
}

/// The name and the settings of the template that the machines have, if it stands for the desired machine.
fn kept<'a>(
    facts: &'a Facts,
    machine: &Machine,
    own: &Template,
) -> Option<(&'a str, &'a Map<String, Value>)> {
    let name = &workload(facts)?.template;
    if *name == own.name {
        return None;
    }
    let found = facts.templates.iter().find(|it| it.name == *name)?;
    let spec = found.spec.as_object()?;
    stands_for(facts.pool.spec.platform.type_, found, machine).then_some((name, spec))
}

/// Whether a template stands for a machine.
fn stands_for(platform: PlatformType, found: &observed::Template, machine: &Machine) -> bool {
    let comparison = Comparison {
        platform,
        live: machine.live,
        // Which settings another operator made, and which ones the API server added, cannot be distinguished. What this
        // operator made is known.
        may_have_more: found.hash.is_none(),
    };
    found.hash.as_ref() == Some(&machine.hash())
        || comparison.is_same("", &found.spec, &machine.spec)
}

/// How a template is compared with a machine.
#[derive(Debug, Clone, Copy)]
struct Comparison {
    platform: PlatformType,
    /// Fields that are changed on machines that run.
    live: &'static [&'static str],
    /// Whether it may have settings that the machine does not mention.
    may_have_more: bool,
}

// === impl Comparison ===

impl Comparison {
    fn is_same(self, place: &str, found: &Value, desired: &Value) -> bool {
        match (found, desired) {
            (Value::Object(found), Value::Object(desired)) => {
                let more = found.keys().filter(|key| !desired.contains_key(*key));
                let mut keys = desired.keys().chain(more);
                keys.all(|key| {
                    let place = format!("{place}/{key}");
                    self.is_same_field(&place, found.get(key), desired.get(key))
                })
            }
            (Value::Array(found), Value::Array(desired)) => {
                let place = format!("{place}/*");
                let mut pairs = found.iter().zip(desired);
                found.len() == desired.len()
                    && pairs.all(|(found, desired)| self.is_same(&place, found, desired))
            }
            (found, desired) => found == desired,
        }
    }

    fn is_same_field(self, place: &str, found: Option<&Value>, desired: Option<&Value>) -> bool {
        if self.is_ignored(place) {
            return true;
        }
        let is_set = |it: &&Value| !it.is_null();
        match (found.filter(is_set), desired.filter(is_set)) {
            (None, None) => true,
            (Some(found), Some(desired)) => self.is_same(place, found, desired),
            (Some(found), None) => {
                self.may_have_more || is_empty_list(found) || self.is_default(place, found)
            }
            (None, Some(desired)) => is_empty_list(desired) || self.is_default(place, desired),
        }
    }

    fn is_ignored(self, place: &str) -> bool {
        let is_live = place
            .strip_prefix('/')
            .is_some_and(|field| self.live.contains(&field));
        is_live || IGNORED.contains(&(self.platform, place))
    }

    fn is_default(self, place: &str, value: &Value) -> bool {
        let text = match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        DEFAULTS.contains(&(self.platform, place, text.as_str()))
    }
}

/// An empty list means the same as none. An empty object may be a choice, and an empty text a value.
fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node_pool::fixtures;
    use crate::platform::machines;

    /// Check O07: this version may begin while an earlier one replaces machines.
    #[test]
    fn new_machines_of_an_earlier_version_are_kept() {
        let platform = |cores: i32| {
            let machine = json!({ "rootVolume": {}, "compute": { "cores": cores } });
            let platform = json!({ "type": "KubeVirt", "kubevirt": machine });
            serde_json::from_value(platform).unwrap()
        };
        // The template that is used, and that of an earlier version.
        let names = |facts: &Facts| {
            let inputs = facts.machine_inputs(facts.release.as_ref().unwrap());
            let machine = machines::machine(&inputs).unwrap().unwrap();
            let earlier = kubevirt::machines::earlier(&inputs).unwrap();
            let used = template(facts, &machine, &inputs);
            (used.name, earlier.template(&inputs).name)
        };
        let mut facts = fixtures::facts();
        facts.pool.spec.platform = platform(4);
        let (used, earlier) = names(&facts);
        assert_ne!(used, earlier);
        facts.workload = Some(observed::Workload {
            template: earlier.clone(),
            ..fixtures::workload(2)
        });
        assert_eq!(names(&facts).0, earlier);
        facts.pool.spec.platform = platform(8);
        let (used, earlier) = names(&facts);
        assert_ne!(used, earlier);
    }

    /// Another operator has given the machines public addresses already.
    #[test]
    fn template_with_public_addresses_is_adopted() {
        let mut facts = fixtures::facts();
        let annotation = "hypershift.openshift.io/aws-machine-public-ips".to_owned();
        facts.cluster.metadata.annotations = Some([(annotation, "true".to_owned())].into());
        let inputs = facts.machine_inputs(facts.release.as_ref().unwrap());
        let machine = machines::machine(&inputs).unwrap().unwrap();
        assert_eq!(machine.spec["publicIP"], true);
        let other = |public: bool| {
            let mut spec = machine.spec.clone();
            spec["publicIP"] = public.into();
            observed::Template {
                name: "other".to_owned(),
                has_capacity: false,
                spec,
                hash: None,
            }
        };
        let platform = PlatformType::Aws;
        assert!(stands_for(platform, &other(true), &machine));
        assert!(!stands_for(platform, &other(false), &machine));
    }

    #[test]
    fn templates_are_compared_field_by_field() {
        const AWS: PlatformType = PlatformType::Aws;
        const AZURE: PlatformType = PlatformType::Azure;
        let type_ = json!({ "instanceType": "a" });
        for (name, platform, found, desired, known, unknown) in [
            ("the same", AWS, type_.clone(), type_.clone(), true, true),
            (
                "another value",
                AWS,
                type_.clone(),
                json!({ "instanceType": "b" }),
                false,
                false,
            ),
            (
                "a field more",
                AWS,
                json!({ "instanceType": "a", "publicIP": true }),
                type_.clone(),
                false,
                true,
            ),
            (
                "a field less",
                AWS,
                type_.clone(),
                json!({ "instanceType": "a", "publicIP": true }),
                false,
                false,
            ),
            (
                "a field more, deeper",
                AWS,
                json!({ "rootVolume": { "size": 16, "iops": 1 } }),
                json!({ "rootVolume": { "size": 16 } }),
                false,
                true,
            ),
            (
                "encryption",
                AWS,
                json!({ "rootVolume": { "size": 16 } }),
                json!({ "rootVolume": { "size": 16, "encrypted": true } }),
                false,
                false,
            ),
            (
                "no value, and no list",
                AWS,
                json!({ "instanceType": "a", "tenancy": null }),
                json!({ "instanceType": "a", "additionalSecurityGroups": [] }),
                true,
                true,
            ),
            (
                "items instead of none",
                AWS,
                json!({ "additionalSecurityGroups": [{ "id": "sg-1" }] }),
                json!({ "additionalSecurityGroups": [] }),
                false,
                false,
            ),
            (
                "other items",
                AWS,
                json!({ "additionalSecurityGroups": [{ "id": "sg-1" }] }),
                json!({ "additionalSecurityGroups": [{ "id": "sg-2" }] }),
                false,
                false,
            ),
            (
                "an empty object instead of another one",
                AWS,
                json!({ "spotMarketOptions": {} }),
                json!({ "other": {} }),
                false,
                false,
            ),
            (
                "defaults",
                AWS,
                json!({ "cloudInit": {}, "tenancy": "default" }),
                json!({ "cloudInit": { "secureSecretsBackend": "secrets-manager" }, "marketType": "OnDemand" }),
                true,
                true,
            ),
            (
                "no default",
                AWS,
                type_.clone(),
                json!({ "instanceType": "a", "tenancy": "dedicated" }),
                false,
                false,
            ),
            (
                "the default of another platform",
                AZURE,
                json!({}),
                json!({ "tenancy": "default" }),
                false,
                false,
            ),
            (
                "tags",
                AWS,
                json!({ "additionalTags": { "a": "1" } }),
                json!({ "additionalTags": { "b": "2" } }),
                true,
                true,
            ),
            (
                "defaults of Azure",
                AZURE,
                json!({ "osDisk": { "diskSizeGB": 30 }, "sshPublicKey": "c3No" }),
                json!({ "osDisk": { "diskSizeGB": 30, "osType": "Linux" }, "sshPublicKey": "" }),
                true,
                true,
            ),
        ] {
            for (may_have_more, expected) in [(false, known), (true, unknown)] {
                let comparison = Comparison {
                    platform,
                    live: &["additionalTags"],
                    may_have_more,
                };
                let is_same = comparison.is_same("", &found, &desired);
                assert_eq!(is_same, expected, "{name}, {may_have_more}");
            }
        }
    }
}
