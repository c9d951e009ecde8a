//! The output for users of a testbed: both views side by side, and how to use it.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use api::group::CapiTypes;
use serde_json::Value;
use testbed::client::{ApiClient, Resource};
use testbed::cluster::{self, Machine};
use testbed::registry;

use crate::manage::{Offer, State};

/// Width of one of the two columns.
const COLUMN: usize = 62;

/// A kind that is shown: its standard `apiVersion`, and its plural.
type Kind = (&'static str, &'static str);

/// What a cluster consists of that stock Cluster API makes by itself.
pub(crate) const CLUSTER: [Kind; 3] = [
    (cluster::CORE, "clusters"),
    (cluster::CONTROL_PLANE, "kubeadmcontrolplanes"),
    (cluster::CORE, "machines"),
];
/// What a hosted cluster has of Cluster API.
pub(crate) const HOSTED: [Kind; 5] = [
    (cluster::CORE, "clusters"),
    (AWS, "awsclusters"),
    (cluster::CORE, "machinedeployments"),
    (cluster::CORE, "machines"),
    (AWS, "awsmachines"),
];
/// Cluster API's provider of AWS, under its standard name.
const AWS: &str = "infrastructure.cluster.x-k8s.io/v1beta2";

/// How to use a testbed.
pub(crate) fn instructions(state: &State) -> String {
    let State {
        name,
        pid,
        directory,
        kubectl,
        offer,
    } = state;
    let directory = directory.display();
    let head = format!(
        "\ntestbed {name} (process {pid}, files and logs in {directory})

  alias kubectl={}
",
        kubectl.display()
    );
    let rest = match offer {
        Offer::ControlPlane {
            direct,
            standard,
            example,
            clusterctl,
        } => views(direct, standard, example, clusterctl),
        Offer::Node {
            kubeconfig,
            registry,
            images,
        } => nodes(kubeconfig, *registry, images),
    };
    head + &rest
}

/// How to use Cluster API on private types.
fn views(direct: &Path, standard: &Path, example: &Path, clusterctl: &Path) -> String {
    let (standard_core, private_core) = (
        core_group(CapiTypes::Standard),
        core_group(CapiTypes::Private),
    );
    format!(
        "  alias clusterctl={clusterctl}
  VIEW={standard}    # through a proxy, as Cluster API's clients see it
  STORE={direct}    # straight to the API server, as it is stored

  kubectl --kubeconfig $VIEW apply -f {example}
  kubectl --kubeconfig $VIEW get machines.{standard_core} -A
  kubectl --kubeconfig $STORE get machines.{private_core} -A
  clusterctl --kubeconfig $VIEW describe cluster demo -n {namespace}
",
        standard = standard.display(),
        direct = direct.display(),
        example = example.display(),
        clusterctl = clusterctl.display(),
        namespace = crate::manage::NAMESPACE,
    )
}

/// How to use nodes.
fn nodes(kubeconfig: &Path, registry: SocketAddr, images: &[String]) -> String {
    let images = images.join("\n    ");
    format!(
        "  export KUBECONFIG={}

  kubectl get nodes
  kubectl get pods -A

  images of this tree, for pods:
    {images}
  more can be pushed to http://{registry}, and are {}/NAME:TAG for pods
  Services and pods are reached from this machine by their addresses.
",
        kubeconfig.display(),
        registry::NAME,
    )
}

/// The group of clusters and machines of given types.
pub(crate) fn core_group(capi_types: CapiTypes) -> String {
    group(cluster::CORE, capi_types)
}

fn group(standard: &str, capi_types: CapiTypes) -> String {
    let version = cluster::api_version(standard, capi_types);
    version
        .split_once('/')
        .map_or(version.clone(), |(group, _)| group.to_owned())
}

/// The objects of a namespace as both clients see them, line by line beside each other.
pub(crate) async fn both_views(
    standard: &ApiClient,
    direct: &ApiClient,
    namespace: &str,
    kinds: &[Kind],
) -> Result<String> {
    let mut text = row("THROUGH THE PROXY", "STRAIGHT TO THE API SERVER");
    for &(api_version, plural) in kinds {
        let left = column(
            standard,
            api_version,
            CapiTypes::Standard,
            namespace,
            plural,
        )
        .await?;
        let right = column(direct, api_version, CapiTypes::Private, namespace, plural).await?;
        text.push_str(&row("", ""));
        for line in 0..left.len().max(right.len()) {
            let cell = |column: &[String]| column.get(line).cloned().unwrap_or_default();
            text.push_str(&row(&cell(&left), &cell(&right)));
        }
    }
    Ok(text)
}

/// One kind as one client sees it: its full name, then an object a line.
async fn column(
    client: &ApiClient,
    api_version: &str,
    capi_types: CapiTypes,
    namespace: &str,
    plural: &str,
) -> Result<Vec<String>> {
    let own_version = cluster::api_version(api_version, capi_types);
    let path = Resource::new(&own_version, plural).within(namespace);
    let mut lines = vec![format!("{plural}.{}", group(api_version, capi_types))];
    let items = client.list(&path).await?;
    lines.extend(items.iter().map(line));
    Ok(lines)
}

/// An object in a line: name, phase or replicas, and the end of its uid, which shows that both columns are about the
/// same object.
fn line(object: &Value) -> String {
    let machine = Machine::read(object);
    let status = &object["status"];
    let instance = status["instanceState"].as_str().unwrap_or_default();
    let state = match status["readyReplicas"].as_u64() {
        Some(ready) => format!("{ready} ready"),
        None if machine.phase.is_empty() => instance.to_owned(),
        None => machine.phase,
    };
    let uid = machine
        .uid
        .rsplit('-')
        .next()
        .unwrap_or_default()
        .to_owned();
    format!("  {:<30} {state:<12} ..{uid}", machine.name)
}

fn row(left: &str, right: &str) -> String {
    let line = format!("{left:<COLUMN$}{right}");
    format!("{}\n", line.trim_end())
}
