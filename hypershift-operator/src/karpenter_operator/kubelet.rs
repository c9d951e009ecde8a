//! The settings of kubelets: every node of Karpenter joins with a taint, which Karpenter removes once it has taken the node
//! up. Pure.

use api::karpenter::v1::kubelet::KubeletSettings;
use serde_json::{Map, Value, json};

use crate::canonical;
use crate::names;

/// The field of the taint.
const TAINTS: &str = "registerWithTaints";
/// The most that the settings of a class may have, in bytes: they are a part of what each node fetches.
const MOST_BYTES: usize = 64 << 10;

/// Manifests with the taint, and the settings of a class beside it. An error says what is wrong with the settings.
pub(super) fn manifest(settings: Option<&KubeletSettings>) -> Result<String, String> {
    let mut config = match settings.map(|it| json!(it)) {
        Some(Value::Object(fields)) => fields,
        Some(_) | None => Map::new(),
    };
    // Some readers ignore the case of names.
    config.retain(|name, _| !name.eq_ignore_ascii_case(TAINTS));
    config.insert(
        TAINTS.to_owned(),
        json!([{ "key": "karpenter.sh/unregistered", "value": "true", "effect": "NoExecute" }]),
    );
    let manifest = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "KubeletConfig",
        "metadata": { "name": names::KARPENTER_TAINT },
        "spec": { "kubeletConfig": config },
    });
    let text = canonical::text(&manifest);
    if text.len() > MOST_BYTES {
        return Err(format!(
            "spec.kubelet has {} bytes of settings, and at most {MOST_BYTES} are supported: remove some",
            text.len()
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn config(settings: &Value) -> Value {
        let settings: KubeletSettings = serde_json::from_value(settings.clone()).unwrap();
        let text = manifest(Some(&settings)).unwrap();
        let manifest: Value = serde_json::from_str(&text).unwrap();
        manifest["spec"]["kubeletConfig"].clone()
    }

    fn taint() -> Value {
        json!([{ "key": "karpenter.sh/unregistered", "value": "true", "effect": "NoExecute" }])
    }

    #[test]
    fn settings_of_a_class_are_beside_the_taint() {
        let settings = json!({
            "maxPods": 200, "systemReserved": { "cpu": "100m" }, "cpuCFSQuota": false, "topologyManagerPolicy": "restricted",
        });
        let mut expected = settings.clone();
        expected[TAINTS] = taint();
        assert_eq!(config(&settings), expected);
    }

    #[test]
    fn large_settings_are_refused() {
        let settings = json!({ "note": "x".repeat(MOST_BYTES) });
        let settings: KubeletSettings = serde_json::from_value(settings).unwrap();
        let problem = manifest(Some(&settings)).unwrap_err();
        assert!(problem.contains("spec.kubelet has"), "{problem}");
        assert!(manifest(None).is_ok());
    }

    proptest! {
        /// Whatever users set, a node joins with the taint: without it, pods would run before Karpenter has taken it up.
        #[test]
        fn settings_of_users_never_override_the_taint(
            upper in proptest::collection::vec(any::<bool>(), TAINTS.len()),
            max_pods in 1_i32..2500,
            value in "[a-z]{0,8}",
        ) {
            let letters = TAINTS.chars().zip(upper);
            let name: String = letters
                .map(|(letter, upper)| if upper { letter.to_ascii_uppercase() } else { letter })
                .collect();
            let settings = json!({ "maxPods": max_pods, name.clone(): [{ "key": value }], TAINTS: [] });
            let config = config(&settings);
            prop_assert_eq!(&config[TAINTS], &taint());
            prop_assert_eq!(&config["maxPods"], &json!(max_pods));
            let fields = config.as_object().unwrap();
            let taints = fields.keys().filter(|it| it.eq_ignore_ascii_case(TAINTS));
            prop_assert_eq!(taints.count(), 1);
        }
    }
}
