//! Endpoints of the Services that lead into a hosted cluster on KubeVirt: its machines. The Services are in the cluster that
//! runs the virtual machines, and have no selector.

use std::net::IpAddr;

use api::group::{CLUSTER_NAME, LABEL_DOMAIN};
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject, ListParams};
use serde_json::{Value, json};

use super::context::Context;
use super::error::Error;
use super::infra::{INFRA_ID, Infra, kind};
use super::machines::Machine;
use super::passthrough;

/// Label of the Service of a slice.
const SERVICE: &str = "kubernetes.io/service-name";
/// Label of the program that writes a slice, and its value.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "control-plane-operator.hypershift.openshift.io";
/// The phase of a machine whose node is there.
const RUNNING: &str = "Running";

/// Applies the slices, and deletes those whose Service is gone.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    let Some(hcp) = ctx.control_plane().await? else {
        return Ok(());
    };
    // What is deleted is left to the cleanup.
    if hcp.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let Some(infra) = Infra::of(ctx, &hcp).await? else {
        return Ok(());
    };
    let ingress = passthrough::apply(ctx, &infra, &hcp).await;
    let mut errors: Vec<_> = ingress.err().into_iter().collect();
    let machines = ctx.machines().await?;
    errors.extend(reconcile(&infra, &hcp, &machines).await?);
    Error::all(errors)
}

/// Returns what failed for single machines.
async fn reconcile(
    infra: &Infra,
    hcp: &DynamicObject,
    machines: &[Machine],
) -> Result<Vec<Error>, Error> {
    let mut errors = Vec::new();
    let services = services(infra, hcp).await?;
    if services.is_empty() {
        prune(infra).await?;
        return Ok(errors);
    }
    for machine in machines.iter().filter(|it| !it.is_deleted) {
        // It is created by the provider.
        let Some(owner) = owner(infra, machine).await? else {
            continue;
        };
        for service in &services {
            match slices(infra, service, machine, &owner) {
                Ok(slices) => {
                    for slice in slices {
                        let applied = infra.apply(&endpoint_slices(), slice, is_earlier).await;
                        errors.extend(applied.err());
                    }
                }
                Err(error) => errors.push(error),
            }
        }
    }
    prune(infra).await?;
    Ok(errors)
}

/// Services without a selector: the one for ingress, and those of load balancers in the hosted cluster.
async fn services(infra: &Infra, hcp: &DynamicObject) -> Result<Vec<DynamicObject>, Error> {
    let api = infra.api(&passthrough::services());
    let failed = |what: &str| Error::client(format!("{what} for virtual machines"));
    let mut services = Vec::new();
    if let Some(name) = passthrough::service_name(hcp) {
        let found = api.get_opt(&name).await;
        let found = found.map_err(failed(&format!("get Service {name}")))?;
        services.extend(found.filter(|it| infra.owns(it)));
    }
    if let Some(cluster) = hcp.labels().get(CLUSTER_NAME) {
        let tenant = format!("{LABEL_DOMAIN}/tenant-service-name");
        let params = ListParams::default().labels(&format!("{tenant},{CLUSTER_NAME}={cluster}"));
        let found = api.list(&params).await;
        services.extend(found.map_err(failed("list Services"))?.items);
    }
    services.retain(|it| it.data["spec"]["selector"].is_null());
    Ok(services)
}

/// A reference to the virtual machine, which has the name of the machine's object of the infrastructure. With it the slices
/// are deleted.
async fn owner(infra: &Infra, machine: &Machine) -> Result<Option<Value>, Error> {
    let Some(name) = &machine.infrastructure else {
        return Ok(None);
    };
    let resource = kind("kubevirt.io/v1", "VirtualMachine", "virtualmachines");
    let found = infra.api(&resource).get_metadata_opt(name).await;
    let found = found.map_err(Error::client(format!("get VirtualMachine {name}")))?;
    Ok(found.map(|it| {
        json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "name": name,
            "uid": it.metadata.uid,
        })
    }))
}

/// The slices of a machine for a Service, one for each family of addresses.
fn slices(
    infra: &Infra,
    service: &DynamicObject,
    machine: &Machine,
    owner: &Value,
) -> Result<Vec<Value>, Error> {
    let name = service.name_any();
    let spec = &service.data["spec"];
    let ports = spec["ports"].as_array().filter(|it| !it.is_empty());
    let ports = ports.ok_or_else(|| Error::Form {
        object: format!("Service {name} for virtual machines"),
        problem: "it has no ports".to_owned(),
    })?;
    let ports = ports.iter().map(|it| {
        let (name, protocol) = (&it["name"], &it["protocol"]);
        json!({ "name": name, "protocol": protocol, "port": it["targetPort"].as_i64() })
    });
    let ports: Vec<_> = ports.collect();
    let families = spec["ipFamilies"].as_array().into_iter().flatten();
    let families = families.filter_map(Value::as_str);
    Ok(families
        .map(|family| {
            let suffix = family.to_ascii_lowercase();
            let slice = format!("{name}-{}-{suffix}", machine.name);
            let mut metadata = infra.metadata(&slice);
            metadata["labels"][SERVICE] = json!(name);
            metadata["labels"][MANAGED_BY] = json!(MANAGER);
            metadata["ownerReferences"] = json!([owner]);
            let is_ready = machine.phase.as_deref() == Some(RUNNING);
            let endpoints = address(machine, family).map(|address| {
                let conditions =
                    json!({ "ready": is_ready, "serving": is_ready, "terminating": false });
                json!({ "addresses": [address.to_string()], "conditions": conditions })
            });
            json!({
                "metadata": metadata,
                "addressType": family,
                "endpoints": endpoints.into_iter().collect::<Vec<_>>(),
                "ports": ports,
            })
        })
        .collect())
}

/// The first address of the family that others reach. Further ones are of networks inside of the machine.
fn address(machine: &Machine, family: &str) -> Option<IpAddr> {
    let addresses = machine.addresses.iter();
    let addresses = addresses.filter(|(type_, _)| type_ == "InternalIP");
    let mut addresses = addresses.filter_map(|(_, address)| address.parse::<IpAddr>().ok());
    addresses.find(|address| match address {
        IpAddr::V4(it) => family == "IPv4" && !it.is_link_local() && !it.is_loopback(),
        IpAddr::V6(it) => family == "IPv6" && !it.is_unicast_link_local() && !it.is_loopback(),
    })
}

/// Whether a slice is one that another operator made for the same purpose.
fn is_earlier(slice: &DynamicObject) -> bool {
    let labels = slice.labels();
    let managed_by = labels.get(MANAGED_BY).map(String::as_str);
    managed_by == Some(MANAGER) && !labels.contains_key(INFRA_ID)
}

/// Deletes slices of this cluster whose Service is gone.
async fn prune(infra: &Infra) -> Result<(), Error> {
    let params = ListParams::default().labels(&format!(
        "{MANAGED_BY}={MANAGER},{}={}",
        INFRA_ID,
        infra.infra_id()
    ));
    let failed = |what: &str| Error::client(format!("{what} for virtual machines"));
    let slices = infra.api(&endpoint_slices()).list_metadata(&params).await;
    let slices = slices.map_err(failed("list EndpointSlices"))?;
    if slices.items.is_empty() {
        return Ok(());
    }
    let services = infra.api(&passthrough::services());
    let services = services.list_metadata(&ListParams::default()).await;
    let services = services.map_err(failed("list Services"))?;
    let is_gone = |name: &str| services.items.iter().all(|it| it.name_any() != name);
    for slice in &slices.items {
        let service = slice.labels().get(SERVICE);
        if service.is_none_or(|name| is_gone(name)) {
            infra.delete(&endpoint_slices(), &slice.name_any()).await?;
        }
    }
    Ok(())
}

fn endpoint_slices() -> ApiResource {
    kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
}

#[cfg(test)]
mod tests {
    use support::testing::{Answer, Expect, Scenario};

    use super::super::context::testing::control_plane;
    use super::*;

    const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/machines/endpointslices";
    const SERVICES: &str = "/api/v1/namespaces/machines/services";

    fn service(families: &[&str]) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": "lb", "namespace": "machines" },
            "spec": {
                "ipFamilies": families,
                "ports": [
                    { "name": "http", "protocol": "TCP", "port": 80, "targetPort": 30080 },
                    { "name": "https", "protocol": "TCP", "port": 443, "targetPort": 30443 },
                ],
            },
        })
    }

    fn machine(phase: &str, addresses: &[&str]) -> Machine {
        let addresses = addresses
            .iter()
            .map(|it| ("InternalIP".to_owned(), (*it).to_owned()));
        let host = [("Hostname".to_owned(), "m-1".to_owned())];
        Machine {
            name: "m-1".to_owned(),
            infrastructure: Some("vm-1".to_owned()),
            phase: Some(phase.to_owned()),
            addresses: host.into_iter().chain(addresses).collect(),
            ..Machine::default()
        }
    }

    fn built(families: &[&str], machine: &Machine) -> Vec<Value> {
        let infra = Infra::for_tests(Scenario::new([]).client());
        let service = serde_json::from_value(service(families)).unwrap();
        slices(&infra, &service, machine, &json!({ "uid": "v" })).unwrap()
    }

    #[tokio::test]
    async fn the_first_address_of_each_family_is_the_endpoint() {
        let both = [
            "fe80::1",
            "169.254.0.2",
            "10.0.0.5",
            "fd01::5",
            "10.132.0.2",
        ];
        for (addresses, family, expected) in [
            (&both[..], "IPv4", Some("10.0.0.5")),
            (&both, "IPv6", Some("fd01::5")),
            (&["10.0.0.5"], "IPv6", None),
            (&["127.0.0.1", "not an address"], "IPv4", None),
        ] {
            let slices = built(&[family], &machine("Running", addresses));
            let [slice] = slices.as_slice() else {
                panic!("{slices:?}");
            };
            let found = slice["endpoints"][0]["addresses"][0].as_str();
            assert_eq!(found, expected, "{addresses:?}");
            assert_eq!(slice["addressType"], family);
            assert_eq!(
                slice["ports"][1],
                json!({ "name": "https", "protocol": "TCP", "port": 30443 })
            );
        }
        let slices = built(&["IPv4", "IPv6"], &machine("Running", &both));
        let names = slices
            .iter()
            .map(|it| it["metadata"]["name"].as_str().unwrap());
        assert_eq!(names.collect::<Vec<_>>(), ["lb-m-1-ipv4", "lb-m-1-ipv6"]);
    }

    #[tokio::test]
    async fn only_machines_that_run_are_ready() {
        for (phase, expected) in [
            ("Running", true),
            ("Provisioned", false),
            ("Deleting", false),
        ] {
            let slices = built(&["IPv4"], &machine(phase, &["10.0.0.5"]));
            let conditions = &slices[0]["endpoints"][0]["conditions"];
            let all = json!({ "ready": expected, "serving": expected, "terminating": false });
            assert_eq!(*conditions, all, "{phase}");
        }
    }

    /// Check T01: slices of other hosted clusters in the same namespace are kept.
    #[tokio::test]
    async fn slices_without_a_service_are_deleted() {
        let slice = |name: &str, service: &str, infra_id: &str| {
            json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {
                    "name": name, "namespace": "machines", "uid": name,
                    "labels": { SERVICE: service, MANAGED_BY: MANAGER, INFRA_ID: infra_id },
                },
            })
        };
        let (kept, gone) = (
            slice("kept", "lb", "a-x7k2p"),
            slice("gone", "old", "a-x7k2p"),
        );
        let foreign = slice("foreign", "old", "b-x7k2p");
        let get = |slice: &Value| {
            let name = slice["metadata"]["name"].as_str().unwrap();
            Expect::get(&format!("{SLICES}/{name}")).answer(Answer::ok(slice))
        };
        let scenario = Scenario::new([
            Expect::get(SLICES).answer(Answer::list(&[kept, gone.clone(), foreign.clone()])),
            Expect::get(SERVICES).answer(Answer::list(&[service(&["IPv4"])])),
            get(&gone),
            Expect::delete(&format!("{SLICES}/gone")),
            get(&foreign),
        ]);
        prune(&Infra::for_tests(scenario.client())).await.unwrap();
        scenario.finish();
    }

    #[tokio::test]
    async fn machines_without_a_virtual_machine_are_waited_for() {
        let vm = "/apis/kubevirt.io/v1/namespaces/machines/virtualmachines/vm-1";
        let mut hcp = control_plane(&json!({}));
        hcp["metadata"]["labels"] = json!({ CLUSTER_NAME: "one" });
        let hcp = serde_json::from_value(hcp).unwrap();
        let mut selecting = service(&["IPv4"]);
        selecting["spec"]["selector"] = json!({ "app": "a" });
        for (services, calls) in [
            (
                vec![service(&["IPv4"])],
                vec![Expect::get(vm).answer(Answer::error(404, "NotFound"))],
            ),
            (vec![selecting], vec![]),
        ] {
            let list = Expect::get(SERVICES).answer(Answer::list(&services));
            let prune = Expect::get(SLICES).answer(Answer::list(&[]));
            let calls = [list].into_iter().chain(calls).chain([prune]);
            let scenario = Scenario::new(calls);
            let infra = Infra::for_tests(scenario.client());
            let machines = [machine("Running", &["10.0.0.5"])];
            let errors = reconcile(&infra, &hcp, &machines).await.unwrap();
            assert!(errors.is_empty(), "{errors:?}");
            scenario.finish();
        }
    }
}
