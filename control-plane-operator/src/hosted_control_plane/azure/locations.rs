//! Whether the network of the nodes is in one region: the virtual network, the network security group and the resource group of
//! the cluster, as the managed identity of this operator sees them. Only the managed service gives it one.

use std::path::Path;
use std::time::Duration;

use api::hypershift::v1beta1::HostedControlPlane;
use api::hypershift::v1beta1::platform::azure::AzurePlatformSpec;
use api::hypershift::v1beta1::platform::azure::identity::{
    AzureAuthenticationType, AzureManagedIdentity,
};
use control_plane_component::azure::Resource;
use serde_json::json;
use support::azure::Cloud;
use support::azure_resources::{is_id, is_name};
use support::rest::{Calls, Client, Error, Request};
use tokio::time::timeout;

/// Where hypershift-operator mounts the certificate of the identity.
const CERTIFICATES: &str = "/mnt/certs";
/// The versions of the APIs of networks and of resource groups.
const NETWORKS: &str = "2024-05-01";
const GROUPS: &str = "2021-04-01";
/// How long a response may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// It is not looked at: there is no managed identity, or its certificate is not mounted.
    NotAsked,
    /// They are in one region.
    Same,
    /// What a user has to change.
    Problem(String),
    /// Azure cannot be used at the moment.
    Unavailable(String),
}

/// A resource with a region.
#[derive(Debug, PartialEq)]
struct Place {
    /// The field that names it.
    field: &'static str,
    request: Request,
}

/// Asks.
pub(super) async fn ask(hcp: &HostedControlPlane) -> Found {
    let asked = hcp.spec.platform.azure.as_ref();
    let Some((azure, identity)) = asked.and_then(|azure| Some((azure, identity(azure)?))) else {
        return Found::NotAsked;
    };
    if !Path::new(CERTIFICATES).is_dir() {
        return Found::NotAsked;
    }
    let name = json!(azure.cloud);
    let Some(cloud) = name.as_str().and_then(Cloud::of_name) else {
        return Found::Problem(format!("spec.platform.azure.cloud {name} is not supported"));
    };
    let places = match places(azure, cloud) {
        Ok(places) => places,
        Err(problem) => return Found::Problem(problem),
    };
    let scope = cloud.endpoints().management_scope();
    match super::source(CERTIFICATES, identity, &scope, cloud) {
        Ok(source) => compare(&Client::new(source), &places).await,
        Err(problem) => Found::Problem(format!(
            "the certificate of managedIdentities.controlPlane.controlPlaneOperator cannot be used: {problem}"
        )),
    }
}

/// The identity of this operator.
fn identity(azure: &AzurePlatformSpec) -> Option<&AzureManagedIdentity> {
    let authentication = &azure.azure_authentication_config;
    let type_ = &authentication.azure_authentication_config_type;
    if *type_ != AzureAuthenticationType::ManagedIdentities {
        return None;
    }
    let identities = authentication.managed_identities.as_ref()?;
    Some(&identities.control_plane.control_plane_operator)
}

/// The requests. The error says which ID is none: users choose them, and they become parts of URLs.
fn places(azure: &AzurePlatformSpec, cloud: Cloud) -> Result<[Place; 3], String> {
    let invalid = |error: control_plane_component::Error| error.to_string();
    Resource::vnet(azure).map_err(invalid)?;
    Resource::security_group(azure).map_err(invalid)?;
    let (subscription, group) = (&azure.subscription_id, &azure.resource_group);
    for (field, name) in [("subscriptionID", subscription), ("resourceGroup", group)] {
        if !is_name(name) {
            return Err(format!(
                "spec.platform.azure.{field} {name:?} is not a name in Azure"
            ));
        }
    }
    let group = format!("/subscriptions/{subscription}/resourceGroups/{group}");
    let place = |field: &'static str, id: &str, version: &str| {
        if !is_id(id) {
            return Err(format!(
                "spec.platform.azure.{field} {id:?} is not an ID in Azure"
            ));
        }
        let url = format!("{}{id}?api-version={version}", cloud.endpoints().management);
        let request = Request::get(url);
        Ok(Place { field, request })
    };
    Ok([
        place("vnetID", &azure.vnet_id, NETWORKS)?,
        place("securityGroupID", &azure.security_group_id, NETWORKS)?,
        place("resourceGroup", &group, GROUPS)?,
    ])
}

async fn compare(calls: &impl Calls, places: &[Place]) -> Found {
    let mut located = Vec::new();
    for Place { field, request } in places {
        match timeout(PATIENCE, calls.call(request)).await {
            Ok(Ok(response)) => {
                let location = response.body["location"].as_str().unwrap_or_default();
                located.push((*field, canonical(location)));
            }
            Ok(Err(error)) => return failed(field, &error),
            Err(_) => {
                return Found::Unavailable(format!("no response within {PATIENCE:?}"));
            }
        }
    }
    let mut regions = located.iter().map(|(_, location)| location);
    let first = regions.next();
    if regions.all(|location| Some(location) == first) {
        return Found::Same;
    }
    let each = located
        .iter()
        .map(|(field, location)| format!("{field} in {location}"));
    Found::Problem(format!(
        "spec.platform.azure names resources in different regions ({}): create the cluster with resources in one region",
        each.collect::<Vec<_>>().join(", ")
    ))
}

/// Outages pass; what Azure refuses is for a user to change.
fn failed(field: &str, error: &Error) -> Found {
    match error {
        Error::Refused { status, code, .. } if *status < 500 && *status != 429 => {
            let refused = format!("{status} {code}");
            Found::Problem(format!(
                "Azure refuses to show spec.platform.azure.{field} ({}): check that it exists, and that the identity \
                 managedIdentities.controlPlane.controlPlaneOperator may read it",
                refused.trim()
            ))
        }
        error => Found::Unavailable(error.to_string()),
    }
}

/// Regions have names for display, too: `East US` is `eastus`.
fn canonical(location: &str) -> String {
    location.replace(' ', "").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Mutex, PoisonError};

    use serde_json::Value;
    use support::rest::Response;

    use super::*;

    const NETWORK: &str = "/subscriptions/s/resourceGroups/n/providers/Microsoft.Network";

    fn azure(changes: &Value) -> AzurePlatformSpec {
        let mut azure = json!({
            "cloud": "AzurePublicCloud",
            "location": "eastus",
            "resourceGroup": "g",
            "subscriptionID": "s",
            "tenantID": "t",
            "vnetID": format!("{NETWORK}/virtualNetworks/v"),
            "subnetID": format!("{NETWORK}/virtualNetworks/v/subnets/a"),
            "securityGroupID": format!("{NETWORK}/networkSecurityGroups/f"),
            "azureAuthenticationConfig": {
                "azureAuthenticationConfigType": "ManagedIdentities",
            },
        });
        for (field, value) in changes.as_object().into_iter().flatten() {
            azure[field] = value.clone();
        }
        serde_json::from_value(azure).unwrap()
    }

    fn found(location: &str) -> Response {
        Response {
            status: 200,
            headers: BTreeMap::new(),
            body: json!({ "location": location }),
        }
    }

    fn refused(status: u16, code: &str) -> Result<Response, Error> {
        Err(Error::Refused {
            what: "GET".to_owned(),
            status,
            code: code.to_owned(),
            message: String::new(),
        })
    }

    /// Responses, the last one first.
    struct Fake(Mutex<Vec<Result<Response, Error>>>);

    impl Calls for Fake {
        async fn call(&self, _: &Request) -> Result<Response, Error> {
            let mut responses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            responses.pop().unwrap()
        }

        async fn pause(&self, _: Duration) {}
    }

    #[test]
    fn resources_are_read_where_the_cloud_manages_them() {
        let places = places(&azure(&json!({})), Cloud::UsGovernment).unwrap();
        let urls = places.map(|place| place.request.url);
        let host = "https://management.usgovcloudapi.net";
        let expected = [
            format!("{host}{NETWORK}/virtualNetworks/v?api-version=2024-05-01"),
            format!("{host}{NETWORK}/networkSecurityGroups/f?api-version=2024-05-01"),
            format!("{host}/subscriptions/s/resourceGroups/g?api-version=2021-04-01"),
        ];
        assert_eq!(urls, expected);
    }

    #[test]
    fn what_is_not_an_id_is_not_part_of_a_url() {
        for (field, value) in [
            ("vnetID", format!("{NETWORK}/virtualNetworks/v?a")),
            ("vnetID", format!("{NETWORK}/networkSecurityGroups/f")),
            (
                "securityGroupID",
                format!("{NETWORK}/networkSecurityGroups/f#a"),
            ),
            ("resourceGroup", "../g".to_owned()),
            ("subscriptionID", "s/t".to_owned()),
        ] {
            let azure = azure(&json!({ field: value }));
            let problem = places(&azure, Cloud::Public).unwrap_err();
            let named = format!("spec.platform.azure.{field}");
            assert!(problem.contains(&named), "{problem}");
        }
    }

    #[tokio::test]
    async fn all_must_be_in_one_region() {
        let forbidden =
            "Azure refuses to show spec.platform.azure.securityGroupID (403 AuthorizationFailed)";
        for (name, responses, expected) in [
            (
                "one region",
                vec![
                    Ok(found("eastus")),
                    Ok(found("East US")),
                    Ok(found("EastUS")),
                ],
                "Same",
            ),
            (
                "two regions",
                vec![
                    Ok(found("eastus")),
                    Ok(found("eastus")),
                    Ok(found("westus")),
                ],
                "(vnetID in eastus, securityGroupID in eastus, resourceGroup in westus)",
            ),
            (
                "forbidden",
                vec![Ok(found("eastus")), refused(403, "AuthorizationFailed")],
                forbidden,
            ),
            ("absent", vec![refused(404, "")], "vnetID (404)"),
            ("throttled", vec![refused(429, "Throttled")], "Unavailable"),
            ("an outage", vec![refused(503, "Busy")], "Unavailable"),
        ] {
            let places = places(&azure(&json!({})), Cloud::Public).unwrap();
            let mut responses = responses;
            responses.reverse();
            let fake = Fake(Mutex::new(responses));
            let found = format!("{:?}", compare(&fake, &places).await);
            assert!(found.contains(expected), "{name}: {found}");
            let left = fake.0.lock().unwrap_or_else(PoisonError::into_inner).len();
            assert_eq!(left, 0, "{name}");
        }
    }

    #[tokio::test]
    async fn only_a_managed_identity_asks() {
        let text = include_str!(
            "../../../../control-plane-component/tests/data/base/hosted-control-plane.yaml"
        );
        let mut hcp: HostedControlPlane = serde_saphyr::from_str(text).unwrap();
        assert_eq!(ask(&hcp).await, Found::NotAsked);
        // There is no identity, and nothing is mounted where tests run.
        hcp.spec.platform.azure = Some(azure(&json!({})));
        assert_eq!(ask(&hcp).await, Found::NotAsked);
    }
}
