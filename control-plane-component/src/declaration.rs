//! What a component declares. The module `components` of control-plane-operator shows how.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::asset::Asset;
use super::capi_use::CapiUse;
use super::certificate::{self, Authority, Leaf};
use super::context::Context;
use super::error::{Error, Result};
use super::facts::Infra;
use super::workload::{Workload, without_nulls};

type AdaptWorkload = Box<dyn Fn(&Context<'_>, &mut Workload) -> Result<()> + Send + Sync>;
type AdaptManifest = Box<dyn Fn(&Context<'_>, Value) -> Result<Value> + Send + Sync>;
/// A question to which the answer is in the context.
pub type Predicate = fn(&Context<'_>) -> bool;

/// The certificates of a component.
type Certificates = fn(&Context<'_>) -> Vec<Leaf>;
/// The authorities of a component.
type Authorities = fn(&Context<'_>) -> Vec<Authority>;

/// How a component is reached, beside the Services of its manifests.
#[derive(Debug, Clone, Copy)]
pub struct Publication {
    /// The names of all Services that there may be.
    pub services: &'static [&'static str],
    /// The names of all Routes that there may be.
    pub routes: &'static [&'static str],
    /// Those of them that there are. The others are deleted.
    pub objects: fn(&Context<'_>) -> Vec<Value>,
    /// Reads its addresses from the statuses of Services and Routes.
    pub addresses: fn(&Context<'_>, &mut Infra),
    /// The addresses that are not known yet, and that components wait for.
    pub missing: fn(&Context<'_>, &Infra) -> Vec<&'static str>,
}

/// Which metrics of a component are collected, where not all of them are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Metrics {
    /// For telemetry: an action of Prometheus, and a regular expression of names.
    pub telemetry: Option<(&'static str, &'static str)>,
    /// The name of its rules in the `ConfigMap` `sre-metric-set`.
    pub sre: Option<&'static str>,
}

/// How many replicas a component has, and how soon it is evicted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Class {
    /// The control plane goes on without it for a while.
    #[default]
    Usual,
    /// Without it the API cannot be used.
    ApiCritical,
    /// A quorum of members with data.
    Etcd,
}

/// A component of the control plane.
pub struct Component {
    /// Its name: that of its workload, its directory of manifests and its `ControlPlaneComponent`.
    pub name: &'static str,
    pub(crate) assets: &'static [Asset],
    pub(crate) traits: Traits,
    pub(crate) adapt: Option<AdaptWorkload>,
    pub(crate) rules: BTreeMap<&'static str, Rule>,
    pub(crate) wanted: Option<Predicate>,
    pub(crate) depends_on: &'static [&'static str],
    pub(crate) konnectivity: Option<Konnectivity>,
    pub(crate) minters: Vec<Minter>,
    pub(crate) prober: Option<Prober>,
    pub(crate) service_account: Option<ServiceAccountKubeconfig>,
    pub(crate) capi: CapiUse,
    pub(crate) authorities: Option<Authorities>,
    pub(crate) certificates: Option<Certificates>,
    pub(crate) publication: Option<Publication>,
    pub(crate) metrics: Metrics,
}

/// What sets a component's pods apart.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each named by a method of the declaration"
)]
pub(crate) struct Traits {
    pub(crate) request_serving: bool,
    pub(crate) zone_spread: bool,
    pub(crate) management_api: bool,
    pub(crate) class: Class,
    /// Whether it starts without the guest's API server.
    pub(crate) independent: bool,
}

/// What is done with a manifest that is not the workload.
#[derive(Default)]
pub(crate) struct Rule {
    pub(crate) adapt: Option<AdaptManifest>,
    pub(crate) wanted: Option<Predicate>,
    pub(crate) writer: Writer,
}

/// Who writes the object of a manifest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Writer {
    /// The framework.
    #[default]
    Framework,
    /// PKI: it holds certificates. The component only declares that it is one of its objects.
    Pki,
}

/// The way into the guest's network: a container beside the component's own.
#[derive(Debug, Clone, Default)]
pub struct Konnectivity {
    /// The volume with the kubeconfig, if it is not `kubeconfig`.
    pub kubeconfig_volume: Option<&'static str>,
    /// Flags of the HTTPS proxy, if there is one.
    pub https: Option<&'static [&'static str]>,
    /// Flags of the SOCKS5 proxy, if there is one.
    pub socks5: Option<&'static [&'static str]>,
}

/// Whose token a token minter asks for, and for whom.
#[derive(Debug, Clone)]
pub struct Minter {
    /// `cloud` or `apiserver`.
    pub for_: TokenFor,
    /// Namespace of the guest's service account.
    pub namespace: &'static str,
    /// Name of the guest's service account.
    pub name: &'static str,
    /// Where the kubeconfig of the guest is found.
    pub kubeconfig: TokenFrom,
    /// Whether the token is asked for once.
    pub oneshot: bool,
}

/// Who accepts a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenFor {
    /// The cloud, by federation.
    Cloud,
    /// The guest's API server.
    ApiServer,
}

/// Where a token minter finds the guest.
#[derive(Debug, Clone)]
pub enum TokenFrom {
    /// In a volume of the pod.
    Volume(&'static str),
    /// In a Secret of the namespace.
    Secret(&'static str),
}

/// What has to be there before a component starts: an init container waits for it.
#[derive(Debug, Clone, Default)]
pub struct Prober {
    /// The volume with the guest's kubeconfig, if one of the following is asked for.
    pub kubeconfig_volume: Option<&'static str>,
    /// Group, version and kind that the guest has to serve.
    pub required_apis: &'static [(&'static str, &'static str, &'static str)],
    /// Whether to wait for the guest's resource Infrastructure.
    pub infrastructure: bool,
    /// `namespace/key=value` of pods that have to be gone.
    pub pods_gone: Option<&'static str>,
    /// A binding of cluster roles in the guest.
    pub cluster_role_binding: Option<&'static str>,
}

/// A kubeconfig of the guest, for a service account of it.
#[derive(Debug, Clone)]
pub struct ServiceAccountKubeconfig {
    /// Namespace of the service account.
    pub namespace: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Where it is mounted.
    pub mount_path: &'static str,
    /// The containers that have it; none is all.
    pub containers: &'static [&'static str],
}

// === impl Component ===

impl Publication {
    /// Nothing is published.
    pub const NONE: Self = Self {
        services: &[],
        routes: &[],
        objects: |_| Vec::new(),
        addresses: |_, _| {},
        missing: |_, _| Vec::new(),
    };
}

impl Component {
    /// A component with these manifests. Its workload is the one named `deployment.yaml`, `statefulset.yaml`, `job.yaml`
    /// or `cronjob.yaml`.
    pub fn new(name: &'static str, assets: &'static [Asset]) -> Self {
        Self {
            name,
            assets,
            traits: Traits::default(),
            adapt: None,
            rules: BTreeMap::new(),
            wanted: None,
            depends_on: &[],
            konnectivity: None,
            minters: Vec::new(),
            prober: None,
            service_account: None,
            capi: CapiUse::None,
            authorities: None,
            certificates: None,
            publication: None,
            metrics: Metrics::default(),
        }
    }

    /// Users and nodes send it requests.
    pub fn request_serving(mut self) -> Self {
        self.traits.request_serving = true;
        self
    }

    /// Its replicas are in different zones and on different nodes.
    pub fn zone_spread(mut self) -> Self {
        self.traits.zone_spread = true;
        self
    }

    /// Without it the API cannot be used: more replicas, and a higher priority.
    pub fn api_critical(mut self) -> Self {
        self.traits.class = Class::ApiCritical;
        self
    }

    /// It is a quorum of members with data.
    pub fn quorum(mut self) -> Self {
        self.traits.class = Class::Etcd;
        self
    }

    /// It does not wait for the guest's API server: that one waits for it, or it serves no cluster of ours.
    pub fn independent(mut self) -> Self {
        self.traits.independent = true;
        self
    }

    /// The authorities that are its own.
    pub fn with_authorities(mut self, authorities: Authorities) -> Self {
        self.authorities = Some(authorities);
        self
    }

    /// The certificates that it serves with, and signs in with.
    pub fn with_certificates(mut self, certificates: Certificates) -> Self {
        self.certificates = Some(certificates);
        self
    }

    /// The Services and Routes by which it is reached, beside those of its manifests.
    pub fn published_by(mut self, publication: Publication) -> Self {
        self.publication = Some(publication);
        self
    }

    /// Which of its metrics are collected.
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// It uses the management cluster's API server.
    pub fn management_api(mut self) -> Self {
        self.traits.management_api = true;
        self
    }

    /// It uses Cluster API in the management cluster. Its workload, a Deployment, gets the label by which a migration finds
    /// and stops it.
    pub fn uses_capi(mut self, capi: CapiUse) -> Self {
        self.capi = capi;
        self
    }

    /// Adapts the workload, before it gets the common settings.
    pub fn adapt(
        mut self,
        adapt: impl Fn(&Context<'_>, &mut Workload) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.adapt = Some(Box::new(adapt));
        self
    }

    /// Adapts another manifest.
    pub fn manifest<K>(
        mut self,
        file: &'static str,
        adapt: impl Fn(&Context<'_>, &mut K) -> Result<()> + Send + Sync + 'static,
    ) -> Self
    where
        K: Serialize + DeserializeOwned + 'static,
    {
        let component = self.name;
        let wrong = move |source| Error::Manifest {
            component,
            file: file.to_owned(),
            kind: std::any::type_name::<K>(),
            source: Box::new(source),
        };
        self.rules.entry(file).or_default().adapt = Some(Box::new(move |context, object| {
            let kept = (object["apiVersion"].clone(), object["kind"].clone());
            let mut typed: K = serde_json::from_value(object).map_err(wrong)?;
            adapt(context, &mut typed)?;
            let mut object = without_nulls(serde_json::to_value(typed).map_err(wrong)?);
            (object["apiVersion"], object["kind"]) = kept;
            Ok(object)
        }));
        self
    }

    /// Creates the object of a manifest only where this is true; else it is deleted.
    pub fn manifest_if(mut self, file: &'static str, wanted: Predicate) -> Self {
        self.rules.entry(file).or_default().wanted = Some(wanted);
        self
    }

    /// The object of a manifest holds certificates: PKI writes it.
    pub fn signed(mut self, file: &'static str) -> Self {
        self.rules.entry(file).or_default().writer = Writer::Pki;
        self
    }

    /// Creates the component only where this is true; else its objects are deleted.
    pub fn wanted_if(mut self, wanted: Predicate) -> Self {
        self.wanted = Some(wanted);
        self
    }

    /// Waits for other components, besides `kube-apiserver`, for which nearly all wait.
    pub fn depends_on(mut self, components: &'static [&'static str]) -> Self {
        self.depends_on = components;
        self
    }

    /// Adds a way into the guest's network.
    pub fn konnectivity(mut self, proxy: Konnectivity) -> Self {
        self.konnectivity = Some(proxy);
        self
    }

    /// Adds a token of the guest.
    pub fn minter(mut self, minter: Minter) -> Self {
        self.minters.push(minter);
        self
    }

    /// Waits for the guest's API server before it starts.
    pub fn prober(mut self, prober: Prober) -> Self {
        self.prober = Some(prober);
        self
    }

    /// Adds a kubeconfig for a service account of the guest.
    pub fn service_account_kubeconfig(mut self, kubeconfig: ServiceAccountKubeconfig) -> Self {
        self.service_account = Some(kubeconfig);
        self
    }

    /// Whether the component is part of the control plane.
    pub fn is_wanted(&self, context: &Context<'_>) -> bool {
        context.predicates == super::Predicates::Ignored
            || self.wanted.is_none_or(|wanted| wanted(context))
    }

    /// Its manifests, in the order of their names.
    pub fn assets(&self) -> &'static [Asset] {
        self.assets
    }

    /// The manifests that something is declared of, beside the workload.
    pub fn declared_manifests(&self) -> impl Iterator<Item = &'static str> {
        self.rules.keys().copied()
    }

    /// All its certificates, that of its service account in the guest included.
    pub fn certificates(&self, context: &Context<'_>) -> Vec<Leaf> {
        let mut all = self
            .certificates
            .map(|certificates| certificates(context))
            .unwrap_or_default();
        let account = self.service_account.as_ref().map(|account| {
            let secret = self.service_account_secret();
            certificate::account(&secret, account.namespace, account.name)
        });
        all.extend(account);
        all
    }

    /// Its own authorities.
    pub fn authorities(&self, context: &Context<'_>) -> Vec<Authority> {
        let authorities = self.authorities.map(|authorities| authorities(context));
        authorities.unwrap_or_default()
    }

    /// Whether it has a workload. Without one, it only declares what others need of it.
    pub fn runs(&self) -> bool {
        !self.assets.is_empty()
    }

    /// API version and kind of each of its manifests.
    pub fn kinds(&self) -> Result<Vec<(String, String)>> {
        let kinds = self.assets.iter().map(|asset| asset.kind(self.name));
        kinds.collect()
    }

    /// How it is reached, beside the Services of its manifests.
    pub fn publication(&self) -> Option<&Publication> {
        self.publication.as_ref()
    }

    /// How it uses Cluster API in the management cluster.
    pub fn capi(&self) -> CapiUse {
        self.capi
    }

    /// The components that it waits for, besides the implied ones.
    pub fn dependencies(&self) -> &'static [&'static str] {
        self.depends_on
    }

    /// The name of the Secret with the kubeconfig for its service account.
    pub(crate) fn service_account_secret(&self) -> String {
        format!("{}-service-account-kubeconfig", self.name)
    }
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Component")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
