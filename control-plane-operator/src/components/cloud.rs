//! Settings of clouds that several components share.

pub(crate) mod azure;
pub(crate) mod health_probe;
pub(crate) mod key_vault;
pub(crate) mod kubevirt;

use control_plane_component::declaration::{Minter, TokenFor};
pub(crate) use control_plane_component::ini;
use control_plane_component::{Context, Error, Predicates, Result, TokenFrom};
use k8s_openapi::api::core::v1::ConfigMap;
use serde::de::DeserializeOwned;
use serde_json::json;

/// The token of a service account of the guest that a cloud trusts.
pub(crate) const TOKEN: &str = "/var/run/secrets/openshift/serviceaccount/token";
/// Name of the container of all cloud controller managers.
pub(crate) const MANAGER: &str = "cloud-controller-manager";
/// The field with the name of the cluster's resources in a cloud.
pub(crate) const INFRA_ID: &str = "spec.infraID";

/// The token of a service account in the guest's namespace `kube-system`.
pub(crate) fn minter(account: &'static str, kubeconfig: &'static str) -> Minter {
    Minter {
        for_: TokenFor::Cloud,
        namespace: "kube-system",
        name: account,
        kubeconfig: TokenFrom::Volume(kubeconfig),
        oneshot: false,
    }
}

/// Returns the settings of a platform, which are required where its components run.
pub(crate) fn section<'a, T>(section: Option<&'a T>, name: &str) -> Result<&'a T> {
    section.ok_or_else(|| Error::missing("field spec.platform", name))
}

/// Sets a key of a ConfigMap.
pub(crate) fn put(config_map: &mut ConfigMap, key: &str, text: String) {
    let data = config_map.data.get_or_insert_default();
    data.insert(key.to_owned(), text);
}

/// Reads a part of the settings of a platform. They are empty where all components are rendered, whatever the platform.
pub(crate) fn settings<T: DeserializeOwned + Default>(
    context: &Context<'_>,
    name: &str,
) -> Result<T> {
    let platform = json!(context.spec().platform);
    match platform.get(name) {
        Some(settings) => T::deserialize(settings).map_err(|error| Error::Invalid {
            field: format!("spec.platform.{name}"),
            value: settings.to_string(),
            hint: error.to_string(),
        }),
        None if context.predicates == Predicates::Ignored => Ok(T::default()),
        None => Err(Error::missing("field spec.platform", name)),
    }
}

/// Returns the label value, or an error that names its field: in a list of labels, other text could add labels.
pub(crate) fn label_value<'a>(field: &str, value: &'a str) -> Result<&'a str> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if value.len() <= 63 && value.bytes().all(is_known) {
        return Ok(value);
    }
    Err(Error::Invalid {
        field: field.to_owned(),
        value: value.to_owned(),
        hint: "write at most 63 letters, digits, hyphens, underscores and periods".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check T16.
    #[test]
    fn label_values_reject_further_labels() {
        for (value, expected) in [
            ("", true),
            ("dev-x7k2p", true),
            ("a_B.9", true),
            ("a,b=c", false),
            ("a\nb", false),
            ("a b", false),
            (&"a".repeat(64), false),
        ] {
            assert_eq!(label_value(INFRA_ID, value).is_ok(), expected, "{value:?}");
        }
    }
}
