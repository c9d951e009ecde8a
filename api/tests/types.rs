//! The kinds as Rust types: what the API accepts is read, and written again as it was.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests, and their helpers fail as they do"
)]

#[expect(dead_code, reason = "other tests look at what is refused")]
#[path = "rules/cases.rs"]
mod cases;

use api::audit_log_persistence::v1alpha1::AuditLogPersistenceConfig;
use api::certificates::v1alpha1 as certificates;
use api::crds;
use api::features::FeatureSet;
use api::hypershift::v1beta1::{
    AwsEndpointService, AzurePrivateLinkService, CertificateSigningRequestApproval,
    ControlPlaneComponent, GcpPrivateServiceConnect, HcpEtcdBackup, HostedCluster,
    HostedControlPlane, NodePool,
};
use api::karpenter::v1::OpenshiftEc2NodeClass;
use api::scheduling::v1alpha1::ClusterSizingConfiguration;
use cases::Verdict;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const HOSTED_CLUSTER: &str = "hostedclusters.hypershift.openshift.io";
const HOSTED_CONTROL_PLANE: &str = "hostedcontrolplanes.hypershift.openshift.io";

#[test]
fn accepted_objects_are_written_as_they_were_read() {
    let mut seen = 0;
    for case in cases::of(FeatureSet::TechPreviewNoUpgrade) {
        if case.verdict != Verdict::Accepted {
            continue;
        }
        let stored = as_stored(&schema(&case.crd), &case.object);
        let written = rewritten(&case.crd, &stored);
        seen += 1;
        assert_eq!(
            written,
            with_amounts_as_text(&schema(&case.crd), stored),
            "{} ({})",
            case.name,
            case.crd
        );
    }
    assert!(seen > 100, "{seen} objects were looked at");
}

#[test]
fn defaults_of_the_types_are_those_of_the_schema() {
    for crd in [HOSTED_CLUSTER, HOSTED_CONTROL_PLANE] {
        let mut object = cases::base(crd);
        object["spec"]["autoscaling"] = json!({});
        object["spec"]["capabilities"] = json!({});
        object["spec"]["configuration"] = json!({ "apiServer": { "audit": {} } });
        object["spec"]["operatorConfiguration"] = json!({
            "clusterNetworkOperator": {},
            "clusterVersionOperator": {},
            "ingressOperator": {
                "endpointPublishingStrategy": { "type": "HostNetwork", "hostNetwork": {} },
            },
        });
        object["spec"]["platform"]["kubevirt"] = json!({ "storageDriver": {} });
        object["spec"]["networking"] = json!({});
        object["spec"]["etcd"]["managed"]["storage"]["persistentVolume"] = json!({});
        let written = rewritten(crd, &object);
        assert_eq!(written, as_stored(&schema(crd), &object), "{crd}");
    }
}

#[test]
fn unknown_fields_are_preserved_where_the_schema_does() {
    let mut cluster = cases::base(HOSTED_CLUSTER);
    let strategy = json!({ "type": "Private", "loadBalancerTuning": { "level": 2 } });
    cluster["spec"]["operatorConfiguration"] =
        json!({ "ingressOperator": { "endpointPublishingStrategy": strategy } });
    let written = rewritten(HOSTED_CLUSTER, &cluster);
    let operators = &written["spec"]["operatorConfiguration"];
    let kept = &operators["ingressOperator"]["endpointPublishingStrategy"];
    assert_eq!(*kept, strategy);
}

#[test]
fn null_stays_null_where_the_schema_allows_it() {
    let mut cluster = cases::base(HOSTED_CLUSTER);
    cluster["status"] = json!({ "version": {
        "desired": { "version": "4.20.1", "image": "images.example.com/example/release:4.20.1" },
        "history": [{
            "state": "Partial",
            "startedTime": "2030-01-31T12:00:00Z",
            "completionTime": null,
            "image": "images.example.com/example/release:4.20.1",
            "verified": false,
        }],
        "observedGeneration": 1,
        "availableUpdates": null,
    }});
    let written = rewritten(HOSTED_CLUSTER, &cluster);
    assert_eq!(written["status"], cluster["status"]);
}

/// Through the Rust type and back.
fn rewritten(crd: &str, object: &Value) -> Value {
    let (plural, group) = crd.split_once('.').unwrap();
    match (plural, group.split_once('.').unwrap().0) {
        ("hostedclusters", _) => through::<HostedCluster>(object),
        ("hostedcontrolplanes", _) => through::<HostedControlPlane>(object),
        ("nodepools", _) => through::<NodePool>(object),
        ("controlplanecomponents", _) => through::<ControlPlaneComponent>(object),
        ("awsendpointservices", _) => through::<AwsEndpointService>(object),
        ("azureprivatelinkservices", _) => through::<AzurePrivateLinkService>(object),
        ("certificaterevocationrequests", _) => {
            through::<certificates::CertificateRevocationRequest>(object)
        }
        ("certificatesigningrequestapprovals", "certificates") => {
            through::<certificates::CertificateSigningRequestApproval>(object)
        }
        ("certificatesigningrequestapprovals", _) => {
            through::<CertificateSigningRequestApproval>(object)
        }
        ("gcpprivateserviceconnects", _) => through::<GcpPrivateServiceConnect>(object),
        ("openshiftec2nodeclasses", _) => through::<OpenshiftEc2NodeClass>(object),
        ("hcpetcdbackups", _) => through::<HcpEtcdBackup>(object),
        ("clustersizingconfigurations", _) => through::<ClusterSizingConfiguration>(object),
        ("auditlogpersistenceconfigs", _) => through::<AuditLogPersistenceConfig>(object),
        (other, _) => panic!("{other} has no type here"),
    }
}

/// Amounts may be numbers, and are written as text.
fn with_amounts_as_text(schema: &Value, value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let inner = |(name, value)| {
                let value = with_amounts_as_text(&schema["properties"][&name], value);
                (name, value)
            };
            fields.into_iter().map(inner).collect()
        }
        Value::Array(items) => {
            let inner = |item| with_amounts_as_text(&schema["items"], item);
            items.into_iter().map(inner).collect()
        }
        Value::Number(number) if is_amount(schema) => Value::String(number.to_string()),
        other => other,
    }
}

fn is_amount(schema: &Value) -> bool {
    schema["x-kubernetes-int-or-string"] == true && schema.get("pattern").is_some()
}

fn through<T: Serialize + DeserializeOwned>(object: &Value) -> Value {
    let typed: T = serde_json::from_value(object.clone()).unwrap();
    serde_json::to_value(typed).unwrap()
}

fn schema(crd: &str) -> Value {
    let mut all = crds::ALL.iter().chain(crds::GUEST);
    let crd = all.find(|found| (found.name)() == crd);
    let mut rendered = (crd.unwrap().render)(FeatureSet::TechPreviewNoUpgrade);
    rendered["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take()
}

/// The object with the schema's defaults, as an API server stores it, and without empty lists, which say nothing.
fn as_stored(schema: &Value, value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields = fields.clone();
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(default) = property.get("default") {
                    fields.entry(name).or_insert_with(|| default.clone());
                }
            }
            let stored = |(name, value): (String, Value)| {
                let stored = as_stored(&schema["properties"][&name], &value);
                (stored != json!([])).then_some((name, stored))
            };
            fields.into_iter().filter_map(stored).collect()
        }
        Value::Array(items) => {
            let stored = items.iter().map(|item| as_stored(&schema["items"], item));
            stored.collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
