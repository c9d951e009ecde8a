//! Google Cloud: part of the technology preview.

mod credentials;
pub(crate) mod infrastructure;
pub(crate) mod machines;

use std::collections::BTreeMap;

use api::hypershift::v1beta1::platform::gcp::GcpResourceLabel;
use kube::api::ApiResource;

use crate::capi::Capi;

/// The version of the provider's kinds.
const VERSION: &str = "v1beta1";
/// The label of resources with the name of their HostedCluster.
const CLUSTER_LABEL: &str = "hypershift-openshift-io-cluster";
/// The label of resources with the name of their cluster on the infrastructure.
const INFRA_ID_LABEL: &str = "hypershift-openshift-io-infra-id";

/// `GCPCluster`.
fn cluster(capi: Capi) -> ApiResource {
    capi.infrastructure(VERSION, "GCPCluster", "gcpclusters")
}

/// `GCPMachine`.
fn machine(capi: Capi) -> ApiResource {
    capi.infrastructure(VERSION, "GCPMachine", "gcpmachines")
}

/// `GCPMachineTemplate`.
pub(crate) fn machine_template(capi: Capi) -> ApiResource {
    let plural = "gcpmachinetemplates";
    capi.infrastructure(VERSION, "GCPMachineTemplate", plural)
}

/// The labels of resources: later lists of the user take precedence, and the operator's labels before all.
fn labels(
    cluster: &str,
    infra_id: &str,
    lists: &[&[GcpResourceLabel]],
) -> BTreeMap<String, String> {
    let given = lists.iter().flat_map(|list| list.iter());
    let given = given.map(|label| (label.key.clone(), label.value.clone()));
    let own = [
        (CLUSTER_LABEL.to_owned(), cluster.to_owned()),
        (INFRA_ID_LABEL.to_owned(), infra_id.to_owned()),
    ];
    given.chain(own).collect()
}
