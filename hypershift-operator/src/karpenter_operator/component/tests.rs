//! The rendered Deployment, and the reports about both components.

use control_plane_component::status::{AVAILABLE, ROLLOUT_COMPLETE, is_true};
use support::testing::{Scenario, restricted_violations};

use super::*;
use crate::karpenter_operator::fixtures;

fn ready(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "generation": 1 },
        "spec": { "replicas": 1 },
        "status": {
            "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
            "conditions": [
                { "type": "Available", "status": "True" },
                { "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" },
            ],
        },
    })
}

fn secret(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name } })
}

fn objects(all: impl IntoIterator<Item = Value>) -> Objects {
    let mut objects = Objects::default();
    for object in all {
        objects.insert(object);
    }
    objects
}

fn with(objects: Objects) -> Inputs {
    let release = Release::from(&*fixtures::release("4.20.3"));
    Inputs {
        release: release.with_overrides("images.example.com/operator:v1", &BTreeMap::new()),
        infra: Infra::default(),
        objects,
    }
}

fn secrets() -> [Value; 2] {
    [
        secret("one-x7k2p-kubeconfig"),
        secret("karpenter-credentials"),
    ]
}

fn deployment() -> Value {
    let (hcp, scenario) = (fixtures::control_plane(), Scenario::new([]));
    let (ctx, inputs) = (fixtures::context(&scenario), with(objects(secrets())));
    let rendered = render(&component(), &inputs.rendering(&ctx, &hcp)).unwrap();
    let kinds: Vec<_> = rendered.objects().map(|it| it["kind"].clone()).collect();
    // The management cluster of the fixture has no monitors.
    assert_eq!(kinds, ["ServiceAccount", "Deployment"]);
    rendered.workload.unwrap()
}

#[tokio::test]
async fn karpenter_acts_in_its_hosted_cluster_only() {
    let deployment = deployment();
    let pod = &deployment["spec"]["template"]["spec"];
    let volumes = pod["volumes"].as_array().unwrap();
    let kubeconfig = volumes.iter().find(|it| it["name"] == KUBECONFIG).unwrap();
    assert_eq!(kubeconfig["secret"]["secretName"], "one-x7k2p-kubeconfig");
    let container = &pod["containers"][0];
    for (name, value) in [
        ("CLUSTER_NAME", "one-x7k2p"),
        ("AWS_REGION", "us-east-1"),
        ("KUBECONFIG", "/mnt/kubeconfig/target-kubeconfig"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/etc/provider/credentials"),
    ] {
        let variables = container["env"].as_array().unwrap();
        let found = variables.iter().find(|it| it["name"] == name);
        assert_eq!(found.unwrap()["value"], value, "{name}");
    }
    let image = container["image"].as_str().unwrap();
    assert!(
        image.starts_with("images.example.com/aws-karpenter-provider-aws@"),
        "{image}"
    );
    assert_eq!(restricted_violations(pod), [""; 0]);
}

/// It has no leader election.
#[tokio::test]
async fn an_update_runs_no_second_karpenter_beside_the_first() {
    let deployment = deployment();
    let spec = &deployment["spec"];
    assert_eq!(spec["replicas"], 1);
    let update = &spec["strategy"]["rollingUpdate"];
    assert_eq!(update["maxSurge"], 0);
    assert_eq!(update["maxUnavailable"], 1);
}

/// Karpenter cannot start without its token, and the token is renewed while it runs.
#[tokio::test]
async fn the_token_is_minted_before_karpenter_starts_and_after() {
    let deployment = deployment();
    let containers = deployment["spec"]["template"]["spec"]["initContainers"]
        .as_array()
        .unwrap();
    let minter = containers
        .iter()
        .find(|it| it["name"] == "token-minter")
        .unwrap();
    assert_eq!(minter["restartPolicy"], "Always");
    assert!(minter["startupProbe"].is_object());
    assert_eq!(minter["image"], "images.example.com/operator:v1");
}

#[tokio::test]
async fn an_annotation_has_another_image() {
    let mut hcp = fixtures::control_plane();
    let key = KARPENTER_PROVIDER_AWS_IMAGE.key().to_owned();
    hcp.annotations_mut()
        .insert(key, "images.example.com/own:v2".to_owned());
    let ctx = fixtures::context(&Scenario::new([]));
    let release = Release::from(&*fixtures::release("4.20.3"));
    let release = release.with_overrides("operator", &overrides(&ctx, &hcp));
    assert_eq!(release.image(IMAGE).unwrap(), "images.example.com/own:v2");
}

#[tokio::test]
async fn what_is_waited_for_is_named() {
    let [kubeconfig, credentials] = secrets();
    for (found, has_status, expected) in [
        (vec![kubeconfig.clone(), credentials.clone()], true, None),
        (
            vec![credentials],
            true,
            Some("Waiting for Secret one-x7k2p-kubeconfig"),
        ),
        (
            vec![kubeconfig],
            true,
            Some("Waiting for Secret karpenter-credentials"),
        ),
        (
            vec![],
            false,
            Some("Waiting for the kubeconfig of the hosted cluster"),
        ),
    ] {
        let (mut hcp, scenario) = (fixtures::control_plane(), Scenario::new([]));
        if !has_status {
            hcp.status = None;
        }
        let (ctx, inputs) = (fixtures::context(&scenario), with(objects(found)));
        let found = waits(&inputs.rendering(&ctx, &hcp));
        assert_eq!(found.as_deref(), expected);
    }
}

#[tokio::test]
async fn this_program_is_reported_and_karpenter_waits_for_it() {
    let (hcp, scenario) = (fixtures::control_plane(), Scenario::new([]));
    let ctx = fixtures::context(&scenario);
    let mut inputs = with(objects([ready("karpenter-operator")]));
    let waits = missing(&component(), &inputs.rendering(&ctx, &hcp));
    assert_eq!(waits, ["karpenter-operator"]);
    let made = report(&inputs.rendering(&ctx, &hcp), own(&inputs), fixtures::now());
    let made = made.unwrap();
    assert_eq!(made["metadata"]["namespace"], fixtures::NAMESPACE);
    assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "hcp-uid");
    let status = ControlPlaneComponentStatus::deserialize(&made["status"]).unwrap();
    for about in [AVAILABLE, ROLLOUT_COMPLETE] {
        assert!(is_true(&status.conditions, about), "{about}: {status:?}");
    }
    inputs.objects.insert(made);
    assert_eq!(
        missing(&component(), &inputs.rendering(&ctx, &hcp)),
        [""; 0]
    );
    // Nothing is written while nothing changes.
    let again = report(
        &inputs.rendering(&ctx, &hcp),
        own(&inputs),
        Timestamp::now(),
    );
    assert_eq!(again, None);
}
