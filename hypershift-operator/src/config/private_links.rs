//! Where private links of hosted clusters on Azure and Google Cloud are made.

use std::path::Path;

use control_plane_component::settings::ARO;
use serde_json::Value;
use support::azure;
use support::azure_resources::{Group, is_name};
use support::google_resources::{self, Region};

use super::{AzurePrivateLink, given};
use crate::args::{AzurePrivateLinkArgs, GcpPrivateServiceConnectArgs};
use crate::error::Fatal;

/// The cloud without a flag.
const PUBLIC: &str = "AzurePublicCloud";

/// On Azure, if there is a resource group. The managed service has another way.
pub(super) fn azure(
    args: &AzurePrivateLinkArgs,
    managed_service: Option<&str>,
) -> Result<Option<AzurePrivateLink>, Fatal> {
    let AzurePrivateLinkArgs {
        azure_resource_group,
        azure_subscription_id,
        azure_cloud_name,
        azure_credentials_file,
    } = args;
    let Some(group) = given(azure_resource_group.as_ref()) else {
        return Ok(None);
    };
    if managed_service == Some(ARO) {
        return Ok(None);
    }
    let file = azure_credentials_file.clone();
    let file = file.filter(|it| !it.as_os_str().is_empty());
    let subscription = match given(azure_subscription_id.as_ref()) {
        Some(subscription) => subscription,
        None => of_file(file.as_deref())?,
    };
    for (flag, value) in [
        ("--azure-resource-group", &group),
        ("--azure-subscription-id", &subscription),
    ] {
        if !is_name(value) {
            return Err(usage(format!("{flag} {value:?} is not a name in Azure")));
        }
    }
    let name = Some(azure_cloud_name.clone()).filter(|it| !it.is_empty());
    let name = name.unwrap_or_else(|| PUBLIC.to_owned());
    let Some(cloud) = azure::Cloud::of_name(&name) else {
        return Err(usage(format!(
            "--azure-cloud-name {name:?} is not a cloud with private links: use AzurePublicCloud, AzureUSGovernmentCloud or \
             AzureChinaCloud"
        )));
    };
    Ok(Some(AzurePrivateLink {
        cloud,
        cloud_name: name,
        group: Group {
            endpoint: cloud.endpoints().management,
            subscription,
            name: group,
        },
        credentials: file,
    }))
}

/// On Google Cloud, if there are a project and a region.
pub(super) fn gcp(args: &GcpPrivateServiceConnectArgs) -> Result<Option<Region>, Fatal> {
    let GcpPrivateServiceConnectArgs {
        gcp_project,
        gcp_region,
    } = args;
    let (project, name) = match (given(gcp_project.as_ref()), given(gcp_region.as_ref())) {
        (None, None) => return Ok(None),
        (Some(project), Some(region)) => (project, region),
        (Some(_), None) | (None, Some(_)) => {
            let message = "--gcp-project and --gcp-region require each other: set both or none";
            return Err(usage(message.to_owned()));
        }
    };
    for (flag, value) in [("--gcp-project", &project), ("--gcp-region", &name)] {
        if !google_resources::is_name(value) {
            let message = format!("{flag} {value:?} is not a name in Google Cloud");
            return Err(usage(message));
        }
    }
    Ok(Some(Region { project, name }))
}

/// The subscription in the file with credentials. Its content is not repeated.
fn of_file(file: Option<&Path>) -> Result<String, Fatal> {
    let missing = |problem: String| {
        usage(format!(
            "--azure-resource-group requires --azure-subscription-id: {problem}"
        ))
    };
    let Some(file) = file else {
        return Err(missing("set it".to_owned()));
    };
    let path = file.display();
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| missing(format!("failed to read {path}: {error}")))?;
    let read: Option<Value> = serde_json::from_str(&text).ok();
    let subscription = read.as_ref().and_then(|it| it["subscriptionId"].as_str());
    let subscription = subscription.filter(|it| !it.is_empty());
    subscription
        .map(str::to_owned)
        .ok_or_else(|| missing(format!("{path} has no subscriptionId")))
}

fn usage(message: String) -> Fatal {
    Fatal::Usage { message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn azure_args(group: &str, subscription: &str, cloud: &str) -> AzurePrivateLinkArgs {
        AzurePrivateLinkArgs {
            azure_resource_group: Some(group.to_owned()),
            azure_subscription_id: Some(subscription.to_owned()),
            azure_cloud_name: cloud.to_owned(),
            azure_credentials_file: None,
        }
    }

    #[test]
    fn flags_for_azure_are_checked() {
        let public = "AzurePublicCloud";
        for (group, subscription, cloud, expected) in [
            ("", "", public, Ok(None)),
            ("g", "s", public, Ok(Some("https://management.azure.com"))),
            ("g", "s", "", Ok(Some("https://management.azure.com"))),
            ("g", "", public, Err("--azure-subscription-id: set it")),
            ("a/b", "s", public, Err("--azure-resource-group \"a/b\"")),
            (
                "g",
                "s",
                "Elsewhere",
                Err("--azure-cloud-name \"Elsewhere\""),
            ),
        ] {
            let args = azure_args(group, subscription, cloud);
            match (azure(&args, None), expected) {
                (Ok(found), Ok(expected)) => {
                    assert_eq!(found.map(|it| it.group.endpoint), expected, "{group}");
                }
                (Err(error), Err(expected)) => {
                    let message = error.to_string();
                    assert!(message.contains(expected), "{message}");
                }
                (found, expected) => panic!("{found:?}, not {expected:?}"),
            }
        }
        let args = azure_args("g", "s", public);
        assert_eq!(azure(&args, Some(ARO)).unwrap(), None);
    }

    #[test]
    fn the_subscription_may_be_in_the_file_with_credentials() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let args = AzurePrivateLinkArgs {
            azure_credentials_file: Some(file.path().to_owned()),
            ..azure_args("g", "", "AzurePublicCloud")
        };
        std::fs::write(file.path(), "{\"clientSecret\": \"hunter2\"").unwrap();
        let error = azure(&args, None).unwrap_err().to_string();
        assert!(error.contains("has no subscriptionId"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
        std::fs::write(file.path(), "{\"subscriptionId\": \"s\"}").unwrap();
        let found = azure(&args, None).unwrap().unwrap();
        assert_eq!(found.group.subscription, "s");
    }

    #[test]
    fn a_project_needs_a_region() {
        let of = |project: &str, region: &str| {
            gcp(&GcpPrivateServiceConnectArgs {
                gcp_project: Some(project.to_owned()),
                gcp_region: Some(region.to_owned()),
            })
        };
        assert_eq!(of("", "").unwrap(), None);
        let region = of("mine-1", "us-central1").unwrap().unwrap();
        assert_eq!(
            (region.project.as_str(), region.name.as_str()),
            ("mine-1", "us-central1")
        );
        for (project, region) in [("mine-1", ""), ("", "us-central1"), ("a/b", "us-central1")] {
            assert!(of(project, region).is_err(), "{project} {region}");
        }
    }
}
