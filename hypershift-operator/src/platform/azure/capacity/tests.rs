//! What Azure says, from a server on loopback.

use std::path::Path;

use serde_json::json;
use support::testing::{HttpAnswer, HttpServer};

use super::*;

const CREDENTIALS: &str = "{\"subscriptionId\":\"sub-1\",\"tenantId\":\"t\",\"clientId\":\"c\",\
    \"clientSecret\":\"hunter2\",\"location\":\"westus\"}";
const TOKEN: HttpAnswer = (200, &[], "{\"access_token\":\"a\",\"expires_in\":3599}");
/// A disk has capabilities, too.
const SKUS: &str = r#"{"value":[
    {"resourceType":"disks","name":"Premium_LRS","capabilities":[{"name":"MaxSizeGiB","value":"4"}]},
    {"resourceType":"virtualMachines","name":"Standard_D4s_v5","locations":["eastus"],"capabilities":[
        {"name":"vCPUs","value":"4"},{"name":"MemoryGB","value":"16"},{"name":"CpuArchitectureType","value":"x64"}]}]}"#;
const EMPTY: &str = "{\"value\":[]}";

fn capacity(processors: u32, memory: u64, gpus: u32) -> Capacity {
    Capacity {
        processors,
        memory,
        gpus,
    }
}

#[test]
fn capabilities_of_vm_sizes_are_read() {
    let sku = |type_: &str, capabilities: &[(&str, &str)]| {
        let capabilities = capabilities
            .iter()
            .map(|(name, value)| json!({ "name": name, "value": value }));
        let capabilities: Vec<_> = capabilities.collect();
        json!({ "resourceType": type_, "name": "Standard_A", "capabilities": capabilities })
    };
    let machines = "virtualMachines";
    for (name, sku, expected) in [
        (
            "a size",
            sku(machines, &[("vCPUs", "2"), ("MemoryGB", "3.5")]),
            Some(capacity(2, 3584, 0)),
        ),
        (
            "one with GPUs",
            sku(
                machines,
                &[("GPUs", "4"), ("vCPUs", "24"), ("MemoryGB", "448")],
            ),
            Some(capacity(24, 458_752, 4)),
        ),
        ("no memory", sku(machines, &[("vCPUs", "2")]), None),
        ("no processors", sku(machines, &[("MemoryGB", "2")]), None),
        (
            "a disk",
            sku("disks", &[("vCPUs", "2"), ("MemoryGB", "2")]),
            None,
        ),
        ("no capabilities", json!({ "resourceType": machines }), None),
    ] {
        let expected = expected.map(|it| ("standard_a".to_owned(), it));
        assert_eq!(read(&sku), expected, "{name}");
    }
}

#[test]
fn memory_may_have_decimals() {
    for (text, expected) in [
        ("16", Some(16_384)),
        ("0.5", Some(512)),
        ("1.75", Some(1792)),
        ("0.123456789", Some(126)),
        ("", None),
        ("1.", None),
        ("a", None),
        ("-1", None),
        ("99999999999999999999", None),
        ("18446744073709551615", None),
    ] {
        assert_eq!(mebibytes(text), expected, "{text}");
    }
}

/// The credentials of a file, and a server in place of Azure.
async fn sizes(
    directory: &Path,
    credentials: &str,
    answers: &[HttpAnswer],
) -> (VmSizes, HttpServer) {
    let file = directory.join("credentials");
    std::fs::write(&file, credentials).unwrap();
    let server = HttpServer::start(answers).await;
    let url = server.url.clone();
    (VmSizes::with_endpoints(file, url.clone(), url), server)
}

#[tokio::test]
async fn a_location_is_listed_once() {
    let directory = tempfile::tempdir().unwrap();
    let answers = [TOKEN, (200, &[], SKUS), TOKEN, (200, &[], EMPTY)];
    let (sizes, server) = sizes(directory.path(), CREDENTIALS, &answers).await;
    for (location, vm_size, expected) in [
        ("eastus", "Standard_D4s_v5", Some(capacity(4, 16_384, 0))),
        ("EastUS", "standard_d4S_v5", Some(capacity(4, 16_384, 0))),
        ("eastus", "Standard_D8s_v5", None),
        ("westus", "Standard_D4s_v5", None),
    ] {
        let found = sizes.capacity(location, vm_size).await;
        assert_eq!(found.clone().ok(), expected, "{location} {vm_size}");
        if let Err(unknown) = found {
            assert!(unknown.is_permanent(), "{unknown}");
            let expected = format!(
                "Azure does not have VM size {vm_size} in {location}: correct spec.platform.azure.vmSize"
            );
            assert_eq!(unknown.to_string(), expected);
        }
    }
    let list = |location: &str| {
        format!(
            "GET /subscriptions/sub-1/providers/Microsoft.Compute/skus?api-version=2021-07-01\
             &$filter=location%20eq%20%27{location}%27"
        )
    };
    let token = || "POST /t/oauth2/v2.0/token".to_owned();
    assert_eq!(
        server.lines(),
        [token(), list("eastus"), token(), list("westus")]
    );
    let authorization = server.header(1, "authorization");
    assert_eq!(authorization.as_deref(), Some("Bearer a"));
}

#[tokio::test]
async fn failures_are_temporary_and_have_no_secrets() {
    let denied = "{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"client 'x' of /subscriptions/y\"}}";
    let elsewhere = "{\"value\":[],\"nextLink\":\"http://127.0.0.1.example.com/next\"}";
    let no_subscription = "{\"tenantId\":\"t\",\"clientId\":\"c\",\"clientSecret\":\"hunter2\"}";
    let table: [(&str, &[HttpAnswer], &str); 4] = [
        (
            CREDENTIALS,
            &[TOKEN, (403, &[], denied)],
            "(403 AuthorizationFailed): the administrator",
        ),
        (
            CREDENTIALS,
            &[(401, &[], "{\"error\":\"invalid_client\"}")],
            "(401 invalid_client): the administrator",
        ),
        (
            CREDENTIALS,
            &[TOKEN, (200, &[], elsewhere)],
            "could not be asked about the VM sizes of eastus",
        ),
        (
            no_subscription,
            &[],
            "could not be asked about the VM sizes of eastus",
        ),
    ];
    for (credentials, answers, expected) in table {
        let directory = tempfile::tempdir().unwrap();
        let (sizes, server) = sizes(directory.path(), credentials, answers).await;
        let error = sizes.capacity("eastus", "Standard_D4s_v5").await;
        let error = error.unwrap_err();
        let text = error.to_string();
        assert!(text.contains(expected), "{text}");
        assert!(!error.is_permanent(), "{text}");
        // What Azure says names identities and subscriptions of the administrators.
        assert!(
            !text.contains("/subscriptions/") && !text.contains("hunter2"),
            "{text}"
        );
        // It is not repeated at once.
        let requests = server.lines().len();
        assert_eq!(requests, answers.len(), "{text}");
        assert_eq!(
            sizes.capacity("eastus", "Standard_D4s_v5").await,
            Err(error)
        );
        assert_eq!(server.lines().len(), requests, "{text}");
    }
}

#[tokio::test]
async fn locations_cannot_change_the_filter() {
    let directory = tempfile::tempdir().unwrap();
    let (sizes, server) = sizes(directory.path(), CREDENTIALS, &[]).await;
    for location in ["", "East US", "eastus' or 'a' eq 'a", "a/b", "a&b"] {
        let error = sizes.capacity(location, "Standard_D4s_v5").await;
        let error = error.unwrap_err();
        assert!(error.is_permanent(), "{error}");
        assert!(error.to_string().contains("is not a location"), "{error}");
    }
    assert!(server.lines().is_empty());
}

#[test]
fn the_token_stays_at_azure() {
    let sizes = VmSizes::new(PathBuf::from("/credentials"), Cloud::Public);
    for (url, expected) in [
        ("https://management.azure.com/subscriptions/a?b", true),
        ("https://management.azure.com:443/subscriptions/a", true),
        ("https://management.azure.com:443@example.com/a", false),
        ("https://management.azure.com.example.com/a", false),
        ("http://management.azure.com/a", false),
    ] {
        assert_eq!(sizes.is_own(url), expected, "{url}");
    }
}
