//! The way to applications of a cluster whose domain is below that of the infrastructure cluster: a Route and a Service
//! of the infrastructure cluster lead to ports of the machines, and from there to a pod on them.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use testbed::add_ons::DOMAIN;
use testbed::client::{ApiClient, Resource};
use testbed::fixtures;
use testbed::hosted::{Cluster, Guest, NAMESPACE, SECRETS};
use testbed::virtual_machines::{INSTANCES, VirtualMachines};

const ROUTES: Resource<'_> = Resource::new("route.openshift.io/v1", "routes");
const SERVICES: Resource<'_> = Resource::new("v1", "services");
const SLICES: Resource<'_> = Resource::new("discovery.k8s.io/v1", "endpointslices");
/// The Route that shows the domain, which is deleted again.
const TEMPORARY: &str = "kubevirt-infra-temp-route";
/// The Service of the hosted cluster's router.
const ROUTER: (&str, &str) = ("openshift-ingress", "router-nodeport-default");
/// The Secret with the authority that the default certificate is of, and its key.
const AUTHORITY: (&str, &str) = ("root-ca", "ca.crt");
/// What the pod serves.
const PAGE: &str = "/apis/subresources.kubevirt.io/v1/version";

/// What the infrastructure cluster has for a hosted cluster.
pub(crate) struct Ingress<'a> {
    cluster: &'a Cluster<'a>,
    guest: &'a Guest,
    /// The host of the Route, which is for all of its domain.
    host: String,
    /// The name of the Service.
    service: String,
}

// === impl Ingress ===

impl<'a> Ingress<'a> {
    /// Starts a router in the hosted cluster, as OpenShift's operator would: its domain is already known.
    pub(crate) async fn start(
        cluster: &'a Cluster<'a>,
        guest: &'a Guest,
        machines: &VirtualMachines,
    ) -> Result<Self> {
        let id = has_the_domain(cluster).await?;
        let image = machines.extension()?;
        let objects = fixtures::render("kubevirt/router", &[("IMAGE", image)])?;
        guest.client.apply(&objects).await?;
        let ingress = Self {
            cluster,
            guest,
            host: format!("https.apps.{}.{DOMAIN}", cluster.name()),
            service: format!("default-ingress-passthrough-service-{id}"),
        };
        ingress.is_published(&id).await?;
        Ok(ingress)
    }

    /// Waits until the Route passes TLS through to the Service, which has no pods of its own and the port of the router.
    async fn is_published(&self, id: &str) -> Result<()> {
        let (namespace, router) = ROUTER;
        let router = SERVICES.named(namespace, router);
        let own = self.cluster.namespace();
        let route = format!("default-ingress-passthrough-route-{id}");
        let (route, service) = (
            ROUTES.named(&own, &route),
            SERVICES.named(&own, &self.service),
        );
        let admin = &self.cluster.fixture().testbed.admin;
        self.stage("its domain is published", async || {
            let found = admin.get(&route).await?["spec"].take();
            let expected = json!({
                "host": self.host,
                "wildcardPolicy": "Subdomain",
                "tls": { "termination": "passthrough" },
                "to": { "kind": "Service", "name": self.service },
            });
            ensure!(found == expected, "the Route is {found}");
            let spec = admin.get(&service).await?["spec"].take();
            let ports = self.guest.client.get(&router).await?["spec"]["ports"].take();
            let mut ports = ports.as_array().into_iter().flatten();
            let port = ports.find(|one| one["port"] == 443);
            let port = port.context("the router has no port")?;
            ensure!(
                spec["selector"].is_null() && spec["ports"][0]["targetPort"] == port["nodePort"],
                "the Service is {spec}, and the port {port}"
            );
            Ok(())
        })
        .await
    }

    /// Waits until the Service leads to all machines, by the addresses of their pods.
    pub(crate) async fn leads_to(&self, count: usize) -> Result<()> {
        let own = self.cluster.namespace();
        let slices = format!(
            "{}?labelSelector=kubernetes.io%2Fservice-name%3D{}",
            SLICES.within(&own),
            self.service
        );
        let admin = &self.cluster.fixture().testbed.admin;
        let what = format!("its domain leads to {count} machines");
        self.stage(&what, async || {
            let slices = admin.list(&slices).await?;
            let endpoints = slices.iter().filter_map(|it| it["endpoints"].as_array());
            let ready = endpoints
                .flatten()
                .filter(|it| it["conditions"]["ready"] == true);
            let ready: BTreeSet<_> = ready.filter_map(|it| it["addresses"][0].as_str()).collect();
            let instances = admin.list(&INSTANCES.within(&own)).await?;
            let expected: BTreeSet<_> = instances
                .iter()
                .filter_map(|it| it["status"]["interfaces"][0]["ipAddress"].as_str())
                .collect();
            ensure!(
                ready == expected && ready.len() == count,
                "it leads to {ready:?}, and the machines are {expected:?}"
            );
            Ok(())
        })
        .await
    }

    /// Waits until a pod in the hosted cluster responds for a name of the domain, with the default certificate.
    pub(crate) async fn reaches_a_pod(&self) -> Result<()> {
        let what = format!("{} is a pod of the hosted cluster", self.host);
        self.stage(&what, async || {
            // Each attempt has a connection of its own.
            let client = self.client().await?;
            let said = client.get(PAGE).await?;
            ensure!(said["gitVersion"].is_string(), "it says {said}");
            Ok(())
        })
        .await
    }

    /// A client that goes to the router of the infrastructure cluster and asks for a name of the domain.
    async fn client(&self) -> Result<ApiClient> {
        let testbed = &self.cluster.fixture().testbed;
        let (secret, key) = AUTHORITY;
        let secret = SECRETS.named(&self.cluster.namespace(), secret);
        let authority = testbed.admin.get(&secret).await?["data"][key].take();
        ensure!(authority.is_string(), "{secret} has no {key}");
        let router = testbed.namespaces().subnets().router();
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "router", "cluster": {
                "server": format!("https://{router}"),
                "tls-server-name": self.host,
                "certificate-authority-data": authority,
            } }],
            "users": [{ "name": "none", "user": {} }],
            "contexts": [{ "name": "router", "context": { "cluster": "router", "user": "none" } }],
            "current-context": "router",
        });
        ApiClient::from_text(&config.to_string()).await
    }

    async fn stage(
        &self,
        what: &str,
        probe: impl std::ops::AsyncFnMut() -> Result<()>,
    ) -> Result<()> {
        let what = format!("{}: {what}", self.cluster.name());
        self.cluster.fixture().stage(&what, probe).await
    }
}

/// The cluster has the domain of the infrastructure cluster's Routes, and the Route that has shown it is gone; gives
/// the part of names that is the cluster's own.
async fn has_the_domain(cluster: &Cluster<'_>) -> Result<String> {
    let spec = cluster.seen().await?["spec"].take();
    let domain = &spec["dns"]["baseDomain"];
    ensure!(domain == DOMAIN, "its domain is {domain}");
    let kubevirt = &spec["platform"]["kubevirt"];
    ensure!(kubevirt["baseDomainPassthrough"] == true, "{kubevirt}");
    let admin = &cluster.fixture().testbed.admin;
    let left = admin.find(&ROUTES.named(NAMESPACE, TEMPORARY)).await?;
    ensure!(left.is_none(), "Route {TEMPORARY} is left");
    let id = kubevirt["generateID"].as_str().map(str::to_owned);
    id.filter(|id| !id.is_empty()).context("it has no ID")
}
