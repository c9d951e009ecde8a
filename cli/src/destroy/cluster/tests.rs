//! What is destroyed with a cluster, and what is not.

use clap::Parser;
use serde_json::{Value, json};
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::hosted::bare_cluster;

const CLUSTERS: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters";
const CONFIG_MAPS: &str = "/api/v1/namespaces/clusters/configmaps";
const SECRETS: &str = "/api/v1/namespaces/clusters/secrets";

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    args: ClusterArgs,
}

fn args(flags: &[&str]) -> ClusterArgs {
    let words = ["destroy", "--name=a", "--quiet"];
    Command::parse_from(words.iter().chain(flags)).args
}

fn cluster(name: &str, infra_id: &str) -> Value {
    let mut cluster = bare_cluster(name);
    cluster["spec"]["infraID"] = json!(infra_id);
    cluster
}

#[test]
fn cloud_resources_go_with_the_cluster_where_there_is_a_cloud() {
    for (platform, flags, expected) in [
        ("AWS", &[][..], true),
        ("Azure", &[][..], true),
        ("KubeVirt", &[][..], true),
        ("OpenStack", &[][..], true),
        ("None", &[][..], false),
        ("Agent", &[][..], false),
        ("AWS", &["--destroy-cloud-resources=false"][..], false),
        ("None", &["--destroy-cloud-resources"][..], true),
    ] {
        let found = args(flags).destroys_cloud_resources(platform);
        assert_eq!(found, expected, "{platform} {flags:?}");
    }
}

#[test]
fn private_links_have_more_time_unless_a_user_says_otherwise() {
    let private = json!({ "platform": { "azure": { "topology": "Private" } } });
    let public = json!({ "platform": { "azure": { "topology": "Public" } } });
    for (flags, spec, expected) in [
        (&[][..], &private, 20),
        (&["--cluster-grace-period=5m"][..], &private, 5),
        (&[][..], &public, 10),
        (&[][..], &Value::Null, 10),
    ] {
        let found = args(flags).patience(spec);
        assert_eq!(found, Duration::from_mins(expected), "{flags:?} {spec}");
    }
}

async fn leftovers(flags: &[&str], scenario: &Scenario) -> anyhow::Result<()> {
    let hosted = Hosted::new(scenario.client());
    let display = Display::new(true);
    args(flags)
        .destroy_leftovers(&hosted, "HostedCluster clusters/a", &display)
        .await
}

#[tokio::test]
async fn what_was_made_for_a_cluster_that_is_gone_is_deleted_by_its_infrastructure() {
    let made = |name: &str| {
        json!({
            "apiVersion": "meta.k8s.io/v1",
            "kind": "PartialObjectMetadata",
            "metadata": { "namespace": "clusters", "name": name },
        })
    };
    let scenario = Scenario::new([
        Expect::get(CLUSTERS).answer(Answer::list(&[cluster("b", "b-12345")])),
        Expect::get(SECRETS).answer(Answer::list(&[made("a-pull-secret")])),
        Expect::delete(&format!("{SECRETS}/a-pull-secret")),
        Expect::get(CONFIG_MAPS).answer(Answer::list(&[made("a-user-ca-bundle")])),
        Expect::delete(&format!("{CONFIG_MAPS}/a-user-ca-bundle")),
    ]);
    leftovers(&["--infra-id=a-12345"], &scenario).await.unwrap();
    scenario.finish();
}

#[tokio::test]
async fn infrastructure_of_another_cluster_is_not_touched() {
    let answer = Answer::list(&[cluster("b", "b-12345")]);
    let scenario = Scenario::new([Expect::get(CLUSTERS).answer(answer)]);
    let error = leftovers(&["--infra-id=b-12345"], &scenario)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("HostedCluster clusters/b"),
        "{error}"
    );
    scenario.finish();
}

#[tokio::test]
async fn without_the_infrastructure_nothing_is_deleted() {
    let scenario = Scenario::new([]);
    leftovers(&[], &scenario).await.unwrap();
    scenario.finish();
}
