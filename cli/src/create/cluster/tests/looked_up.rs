//! What is asked of the management cluster before a cluster is created.

use serde_json::json;
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::hosted::Hosted;
use crate::install::display::Display;

const NODES: &str = "/api/v1/nodes";

fn node(arch: &str) -> Value {
    json!({
        "apiVersion": "meta.k8s.io/v1",
        "kind": "PartialObjectMetadata",
        "metadata": { "name": "n", "labels": { "kubernetes.io/arch": arch } },
    })
}

async fn check(scenario: &Scenario, flags: &[&str]) -> anyhow::Result<()> {
    let line = parse("none", flags).unwrap();
    let (mut options, _) = resolved(&line, Program::Hcp).unwrap();
    if let Cluster::None(of) = &line {
        // An image is in each of these command lines, which is used instead of a stream.
        options.release_stream.clone_from(&of.common.release_stream);
    }
    let hosted = Hosted::new(scenario.client());
    management::check_arch(&hosted, &options, &Display::new(true)).await
}

#[tokio::test]
async fn a_release_is_not_read_where_nodes_have_the_architecture_or_none_is_known() {
    for answer in [
        Answer::list(&[node("arm64"), node("amd64")]),
        Answer::list(&[]),
        Answer::error(403, "Forbidden"),
    ] {
        let scenario = Scenario::new([Expect::get(NODES).answer(answer)]);
        check(&scenario, &[]).await.unwrap();
        scenario.finish();
    }
}

#[tokio::test]
async fn a_release_for_all_architectures_needs_no_look_at_nodes() {
    let scenario = Scenario::new([]);
    let flags = ["--release-stream=4-stable-multi"];
    check(&scenario, &flags).await.unwrap();
    scenario.finish();
}
