//! Power Virtual Server and IBM Cloud.

use serde_json::json;

use super::{edit, empty, facts, missing};
use crate::facts::Found;
use crate::hosted_cluster::validate::{Finding, validate};

#[test]
fn empty_settings_of_power_vs_are_refused() {
    for (name, field, value, expected) in [
        (
            "no settings",
            "/platform/powervs",
            json!(null),
            "spec.platform.powervs is required: set it",
        ),
        (
            "no account",
            "/platform/powervs/accountID",
            json!(""),
            "spec.platform.powervs.accountID is empty: set it to the ID of the IBM Cloud account",
        ),
        (
            "no DNS",
            "/platform/powervs/cisInstanceCRN",
            json!(""),
            "spec.platform.powervs.cisInstanceCRN is empty",
        ),
        (
            "no resource group",
            "/platform/powervs/resourceGroup",
            json!(" "),
            "spec.platform.powervs.resourceGroup is empty",
        ),
        (
            "no region",
            "/platform/powervs/region",
            json!(""),
            "spec.platform.powervs.region is empty",
        ),
        (
            "no zone",
            "/platform/powervs/zone",
            json!(""),
            "spec.platform.powervs.zone is empty",
        ),
        (
            "no workspace",
            "/platform/powervs/serviceInstanceID",
            json!(""),
            "spec.platform.powervs.serviceInstanceID is empty",
        ),
        (
            "no network",
            "/platform/powervs/subnet",
            json!({ "id": "" }),
            "spec.platform.powervs.subnet has neither id nor name",
        ),
        (
            "no VPC",
            "/platform/powervs/vpc/name",
            json!(""),
            "spec.platform.powervs.vpc.name is empty",
        ),
        (
            "a VPC nowhere",
            "/platform/powervs/vpc/region",
            json!(""),
            "spec.platform.powervs.vpc.region is empty",
        ),
        (
            "no credentials",
            "/platform/powervs/storageOperatorCloudCreds",
            json!({ "name": "" }),
            "spec.platform.powervs.storageOperatorCloudCreds.name is empty: set it to the name of a Secret with the keys \
             ibmcloud_api_key and ibm-credentials.env",
        ),
    ] {
        let mut facts = facts("powervs", |_| {});
        edit(&mut facts, field, value);
        let findings = validate(&facts);
        assert!(!findings.allow_changes(), "{name}");
        let Finding::Bad { reason, message } = findings.configuration else {
            panic!("{name}: it is accepted");
        };
        assert_eq!(reason, "InvalidConfiguration", "{name}");
        assert!(message.contains(expected), "{name}: {message}");
    }
}

/// A Secret that is not complete blocks changes, and is a matter of the credentials, too.
#[test]
fn credentials_of_power_vs_are_complete() {
    let fields = [
        (
            "kubeCloudControllerCreds",
            "one-cloud-controller",
            "ibmcloud_api_key, ibm-credentials.env",
        ),
        (
            "nodePoolManagementCreds",
            "one-node-pool",
            "ibm-credentials.env",
        ),
        (
            "ingressOperatorCloudCreds",
            "one-ingress",
            "ibmcloud_api_key, ibm-credentials.env",
        ),
        (
            "storageOperatorCloudCreds",
            "one-storage",
            "ibmcloud_api_key, ibm-credentials.env",
        ),
        (
            "imageRegistryOperatorCloudCreds",
            "one-registry",
            "ibmcloud_api_key, ibm-credentials.env",
        ),
    ];
    for (field, name, keys) in fields {
        let named = format!("spec.platform.powervs.{field} names Secret clusters/{name}, which");
        let mut absent = facts("powervs", |_| {});
        missing(&mut absent, name);
        let mut bare = facts("powervs", |_| {});
        for (reference, found) in &mut bare.referenced {
            if reference.name == name {
                *found = empty();
            }
        }
        for (facts, expected) in [
            (absent, format!("{named} does not exist: create it")),
            (bare, format!("{named} lacks {keys}: add it")),
        ] {
            let findings = validate(&facts);
            assert!(!findings.allow_changes(), "{field}");
            let credentials = Finding::bad("PlatformCredentialsNotFound", expected.clone());
            assert_eq!(findings.credentials, credentials, "{field}");
            let configuration = Finding::bad("InvalidConfiguration", expected);
            assert_eq!(findings.configuration, configuration, "{field}");
        }
    }
}

#[test]
fn credentials_do_not_take_the_place_of_other_secrets() {
    let mut facts = facts("powervs", |_| {});
    let mut references = facts.referenced.iter();
    let (reference, _) = references.find(|(it, _)| it.name == "one-ingress").unwrap();
    facts.occupied = vec![reference.clone()];
    let Finding::Bad { message, .. } = validate(&facts).configuration else {
        panic!("it is accepted");
    };
    assert!(
        message.contains("create the Secret with another name"),
        "{message}"
    );
}

#[test]
fn incomplete_keys_of_ibm_cloud_are_refused() {
    let keys = json!([{
        "crkID": "a", "instanceID": "b", "correlationID": "c", "url": "https://kms.example.com", "keyVersion": 1,
    }]);
    let with = |region: &str, auth: &serde_json::Value, keys: &serde_json::Value| json!({ "region": region, "auth": auth, "keyList": keys });
    let managed = json!({ "type": "Managed", "managed": {} });
    let none = json!({ "type": "Unmanaged" });
    let unnamed = json!({ "type": "Unmanaged", "unmanaged": { "credentials": { "name": "" } } });
    for (name, ibm_cloud, expected) in [
        ("complete", with("us-south", &managed, &keys), None),
        ("no settings", json!(null), Some("kms.ibmcloud is not set")),
        (
            "no region",
            with("", &managed, &keys),
            Some("kms.ibmcloud.region is empty"),
        ),
        (
            "no key",
            with("us-south", &managed, &json!([])),
            Some("kms.ibmcloud.keyList is empty"),
        ),
        (
            "no way to authenticate",
            with("us-south", &none, &keys),
            Some("auth.unmanaged.credentials.name is empty"),
        ),
        (
            "no Secret",
            with("us-south", &unnamed, &keys),
            Some("with the key iam_apikey"),
        ),
    ] {
        let mut facts = facts("ibmcloud", |_| {});
        let kms = json!({ "provider": "IBMCloud", "ibmcloud": ibm_cloud });
        edit(
            &mut facts,
            "/secretEncryption",
            json!({ "type": "kms", "kms": kms }),
        );
        match (validate(&facts).configuration, expected) {
            (Finding::Good, None) => {}
            (Finding::Bad { message, .. }, Some(expected)) => {
                assert!(message.contains(expected), "{name}: {message}");
            }
            (found, _) => panic!("{name}: {found:?}"),
        }
    }
    // A Secret that does not exist is one of the references.
    let mut facts = facts("ibmcloud", |_| {});
    let auth = json!({ "type": "Unmanaged", "unmanaged": { "credentials": { "name": "key" } } });
    let kms = json!({ "provider": "IBMCloud", "ibmcloud": with("us-south", &auth, &keys) });
    edit(
        &mut facts,
        "/secretEncryption",
        json!({ "type": "kms", "kms": kms }),
    );
    let reference = crate::facts::references::references(&facts.cluster)
        .into_iter()
        .find(|it| it.name == "key")
        .unwrap();
    facts.referenced.push((reference, Found::Missing));
    let Finding::Bad { message, .. } = validate(&facts).configuration else {
        panic!("it is accepted");
    };
    assert!(
        message.contains("Secret clusters/key, which does not exist"),
        "{message}"
    );
}
