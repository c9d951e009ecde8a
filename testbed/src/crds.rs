//! Custom resource definitions: the standard ones as upstream ships them, the private ones as the product derives them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group::{CapiTypes, GroupTable};
use cli::crds::source::module;
use serde_json::{Value, json};

use crate::client::{ApiClient, Resource};
use crate::conditions;
use crate::modules::Module;
use crate::providers::{Provider, Shared};
use crate::wait;

/// How long the API server may take to serve new kinds.
const SERVED_WITHIN: Duration = Duration::from_secs(30);

const CRDS: Resource<'_> = Resource::new("apiextensions.k8s.io/v1", "customresourcedefinitions");

/// The Go modules that hold the CRDs of the testbed's Cluster API: core and kubeadm, and the development provider.
const CLUSTER_API: [&str; 2] = ["sigs.k8s.io/cluster-api", "sigs.k8s.io/cluster-api/test"];

/// Cluster API's CRDs with one set of types of the group table.
pub async fn cluster_api(capi_types: CapiTypes) -> Result<Vec<Value>> {
    let standard = tokio::task::spawn_blocking(read_standard)
        .await
        .context("reading the CRDs was cut short")??;
    match capi_types {
        CapiTypes::Standard => Ok(standard.into_iter().map(without_conversion).collect()),
        CapiTypes::Private => cli::crds::derive(&GroupTable::default(), standard)
            .context("cannot derive the private CRDs"),
    }
}

/// The CRDs of a provider with one set of types of the group table, and those of other projects that it uses.
pub async fn provider(provider: Provider, capi_types: CapiTypes) -> Result<Vec<Value>> {
    let (standard, shared) = tokio::task::spawn_blocking(move || read_provider(provider))
        .await
        .context("reading the provider's CRDs was cut short")??;
    let own: Vec<_> = match capi_types {
        CapiTypes::Standard => standard.into_iter().map(without_conversion).collect(),
        CapiTypes::Private => cli::crds::derive(&GroupTable::default(), standard)
            .context("cannot derive the private CRDs")?,
    };
    Ok(own.into_iter().chain(shared).collect())
}

/// All that hosted clusters need of given types: Cluster API's, and those of the provider for AWS.
pub async fn of_hosted_clusters(capi_types: CapiTypes) -> Result<Vec<Value>> {
    let mut all = cluster_api(capi_types).await?;
    all.extend(provider(Provider::Aws, capi_types).await?);
    Ok(all)
}

/// The CRDs of a platform that has another version of Cluster API, and those of the test's own provider for it.
pub async fn platform() -> Result<Vec<Value>> {
    let read = || read_module(Module::Platform, CLUSTER_API[0]);
    let theirs = tokio::task::spawn_blocking(read)
        .await
        .context("reading the platform's CRDs was cut short")??;
    let own = [
        "PlatformCluster",
        "PlatformMachine",
        "PlatformMachineTemplate",
    ]
    .map(of_own_provider);
    Ok(theirs
        .into_iter()
        .map(without_conversion)
        .chain(own)
        .collect())
}

/// A CRD of a provider that has no manager.
fn of_own_provider(kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let group = "infrastructure.cluster.x-k8s.io";
    let mut crd = of_any_object(group, "v1beta1", kind, &plural, "Namespaced");
    crd["metadata"]["labels"] = json!({ "cluster.x-k8s.io/v1beta1": "v1beta1" });
    crd
}

/// A CRD of a kind that takes any object. `scope` is `Cluster` or `Namespaced`.
pub fn of_any_object(group: &str, version: &str, kind: &str, plural: &str, scope: &str) -> Value {
    json!({
        "apiVersion": CRDS.api_version,
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "scope": scope,
            "names": {
                "kind": kind,
                "listKind": format!("{kind}List"),
                "plural": plural,
                "singular": kind.to_lowercase(),
            },
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    })
}

/// Installs CRDs and waits until their kinds are served.
pub async fn install(admin: &ApiClient, crds: &[Value]) -> Result<()> {
    admin.apply(crds).await?;
    for crd in crds {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("{}/{name}", CRDS.all());
        wait::until(&format!("{name} to be served"), SERVED_WITHIN, async || {
            established(&admin.get(&path).await?)
        })
        .await?;
    }
    Ok(())
}

/// Removes CRDs, with whatever is in them, and waits until they are gone.
pub async fn remove(admin: &ApiClient, crds: &[Value]) -> Result<()> {
    let paths: Vec<_> = crds
        .iter()
        .filter_map(|crd| crd["metadata"]["name"].as_str())
        .map(|name| format!("{}/{name}", CRDS.all()))
        .collect();
    for path in &paths {
        admin.delete(path).await?;
    }
    for path in &paths {
        wait::until(&format!("{path} to be gone"), SERVED_WITHIN, async || {
            ensure!(admin.find(path).await?.is_none(), "it is there");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

fn read_standard() -> Result<Vec<Value>> {
    let mut crds = Vec::new();
    for path in CLUSTER_API {
        crds.extend(read_module(Module::ClusterApi, path)?);
    }
    Ok(crds)
}

/// The CRDs of a provider's own kinds, and those of other projects that it uses.
fn read_provider(provider: Provider) -> Result<(Vec<Value>, Vec<Value>)> {
    let standard = read_module(provider.module(), provider.go_module())?;
    let Some(Shared { path, crds }) = provider.shared() else {
        return Ok((standard, Vec::new()));
    };
    let mut shared = read_module(provider.module(), path)?;
    shared.retain(|crd| crds.iter().any(|name| crd["metadata"]["name"] == *name));
    ensure!(
        shared.len() == crds.len(),
        "{path} does not have all of {crds:?}"
    );
    Ok((standard, shared))
}

/// The CRDs of the Go module `path`, in the version that a wrapper module has.
fn read_module(wrapper: Module, path: &str) -> Result<Vec<Value>> {
    let version = wrapper.version_of(path)?;
    let module: module::Module = format!("{path}@{version}").parse()?;
    let documents = module::read(&module)?.documents.into_iter();
    Ok(documents.map(|document| document.value).collect())
}

/// Upstream's conversion webhook is a Service of an installation that is not here; only the stored version is used.
fn without_conversion(mut crd: Value) -> Value {
    if let Some(spec) = crd["spec"].as_object_mut() {
        spec.remove("conversion");
    }
    crd
}

fn established(crd: &Value) -> Result<()> {
    ensure!(
        conditions::is_true(crd, "Established"),
        "not established: {}",
        crd["status"]
    );
    Ok(())
}
