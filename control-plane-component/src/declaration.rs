//! Component declarations. The module `components` of control-plane-operator documents how to add one.

use std::collections::BTreeMap;
use std::fmt;

use api::hypershift::v1beta1::capabilities::OptionalCapability;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::asset::Asset;
use super::capi_use::CapiUse;
use super::certificate::{self, Authority, Leaf};
use super::context::Context;
use super::error::{Error, Result};
use super::facts::Infra;
use super::operands::Operands;
use super::workload::{Workload, without_nulls};

type AdaptWorkload = Box<dyn Fn(&Context<'_>, &mut Workload) -> Result<()> + Send + Sync>;
type AdaptManifest = Box<dyn Fn(&Context<'_>, Value) -> Result<Value> + Send + Sync>;
/// A condition on the context.
pub type Predicate = fn(&Context<'_>) -> bool;

/// The certificates of a component.
type Certificates = fn(&Context<'_>) -> Vec<Leaf>;
/// The authorities of a component.
type Authorities = fn(&Context<'_>) -> Vec<Authority>;

/// How a component is published, in addition to the Services in its manifests.
#[derive(Debug, Clone, Copy)]
pub struct Publication {
    /// Names of all Services that it can have.
    pub services: &'static [&'static str],
    /// Names of all Routes that it can have.
    pub routes: &'static [&'static str],
    /// The desired Services and Routes. The others are deleted.
    pub objects: fn(&Context<'_>) -> Vec<Value>,
    /// Reads its addresses from the statuses of Services and Routes.
    pub addresses: fn(&Context<'_>, &mut Infra),
    /// The required addresses that are not known yet.
    pub missing: fn(&Context<'_>, &Infra) -> Vec<&'static str>,
}

/// Which metrics of a component are collected if the metrics set is restricted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Metrics {
    /// For telemetry: a Prometheus relabel action, and a regular expression for metric names.
    pub telemetry: Option<(&'static str, &'static str)>,
    /// The key of its rules in `ConfigMap` `sre-metric-set`.
    pub sre: Option<&'static str>,
}

/// Determines the default replicas and the priority class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Class {
    /// The control plane tolerates its absence for a while.
    #[default]
    Standard,
    /// The API is unavailable without it.
    ApiCritical,
    /// Members that form a quorum and hold data.
    Etcd,
}

/// A component of the control plane.
pub struct Component {
    /// Name of the component, its workload, its manifest directory and its `ControlPlaneComponent`.
    pub name: &'static str,
    pub(crate) assets: &'static [Asset],
    pub(crate) traits: Traits,
    pub(crate) adapt: Option<AdaptWorkload>,
    pub(crate) rules: BTreeMap<&'static str, Rule>,
    pub(crate) enabled: Option<Predicate>,
    pub(crate) replaces: Option<fn(&Value) -> bool>,
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
    pub(crate) operands: Operands,
}

/// Properties of a component's pods.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each named by a method of the declaration"
)]
pub(crate) struct Traits {
    pub(crate) request_serving: bool,
    pub(crate) zone_spread: bool,
    pub(crate) management_api: bool,
    pub(crate) token: bool,
    pub(crate) class: Class,
    /// Whether it starts before the guest's API server is available.
    pub(crate) independent: bool,
}

/// How a manifest other than the workload is rendered.
#[derive(Default)]
pub(crate) struct Rule {
    pub(crate) adapt: Option<AdaptManifest>,
    pub(crate) enabled: Option<Predicate>,
    pub(crate) writer: Writer,
}

/// The owner that writes the object of a manifest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Writer {
    /// The component framework.
    #[default]
    Framework,
    /// PKI, because the object holds certificates. The component only declares it.
    Pki,
}

/// Access to the guest's network: proxy containers in the component's pods.
///
/// The flags of each proxy are those that only this component has. The guest's own proxy, the address family and CA
/// certificates of users are added.
#[derive(Debug, Clone, Default)]
pub struct Konnectivity {
    /// Volume with the kubeconfig; defaults to `kubeconfig`.
    pub kubeconfig_volume: Option<&'static str>,
    /// Flags of the HTTPS proxy, if enabled; `Some(&[])` for none.
    pub https: Option<&'static [&'static str]>,
    /// Flags of the SOCKS5 proxy, if enabled; `Some(&[])` for none.
    pub socks5: Option<&'static [&'static str]>,
}

/// A token minter: the service account and the audience of its token.
#[derive(Debug, Clone)]
pub struct Minter {
    /// Audience of the token: `cloud` or `apiserver`.
    pub for_: TokenFor,
    /// Namespace of the guest's service account.
    pub namespace: &'static str,
    /// Name of the guest's service account.
    pub name: &'static str,
    /// Source of the guest's kubeconfig.
    pub kubeconfig: TokenFrom,
    /// Whether the minter exits after one token.
    pub oneshot: bool,
}

/// Audience of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenFor {
    /// The cloud, through workload identity federation.
    Cloud,
    /// The guest's API server.
    ApiServer,
}

/// Source of a token minter's kubeconfig.
#[derive(Debug, Clone)]
pub enum TokenFrom {
    /// A volume of the pod.
    Volume(&'static str),
    /// A Secret of the namespace.
    Secret(&'static str),
}

/// Prerequisites of a component: an init container waits for them.
#[derive(Debug, Clone, Default)]
pub struct Prober {
    /// Volume with the guest's kubeconfig; required for the checks below.
    pub kubeconfig_volume: Option<&'static str>,
    /// Group, version and kind that the guest must serve.
    pub required_apis: &'static [(&'static str, &'static str, &'static str)],
    /// Group, version and kind that it must serve only if it has the capability.
    pub optional_apis: &'static [(
        OptionalCapability,
        (&'static str, &'static str, &'static str),
    )],
    /// Whether to wait for the guest's Infrastructure `cluster`.
    pub infrastructure: bool,
    /// `namespace/key=value` of pods that must be deleted first.
    pub pods_gone: Option<&'static str>,
    /// Name of a ClusterRoleBinding in the guest to wait for.
    pub cluster_role_binding: Option<&'static str>,
}

/// A kubeconfig for a service account of the guest.
#[derive(Debug, Clone)]
pub struct ServiceAccountKubeconfig {
    /// Namespace of the service account.
    pub namespace: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Mount path.
    pub mount_path: &'static str,
    /// Containers that mount it; empty means all.
    pub containers: &'static [&'static str],
}

// === impl Component ===

impl Konnectivity {
    /// Flag: APIs of clouds are reached from the management cluster, through the proxy of this operator if it has one.
    pub const DIRECT_TO_CLOUD: &'static str = "--connect-directly-to-cloud-apis=true";
}

impl Publication {
    /// No Services and no Routes.
    pub const NONE: Self = Self {
        services: &[],
        routes: &[],
        objects: |_| Vec::new(),
        addresses: |_, _| {},
        missing: |_, _| Vec::new(),
    };
}

impl Component {
    /// Creates a component with these manifests. Its workload is the file named `deployment.yaml`, `statefulset.yaml`,
    /// `job.yaml` or `cronjob.yaml`.
    pub fn new(name: &'static str, assets: &'static [Asset]) -> Self {
        Self {
            name,
            assets,
            traits: Traits::default(),
            adapt: None,
            rules: BTreeMap::new(),
            enabled: None,
            replaces: None,
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
            operands: Operands::None,
        }
    }

    /// Marks it as request-serving: users and nodes send it requests.
    pub fn request_serving(mut self) -> Self {
        self.traits.request_serving = true;
        self
    }

    /// Schedules its replicas in different zones and on different nodes.
    pub fn zone_spread(mut self) -> Self {
        self.traits.zone_spread = true;
        self
    }

    /// Marks it as critical for the API: more replicas and a higher priority.
    pub fn api_critical(mut self) -> Self {
        self.traits.class = Class::ApiCritical;
        self
    }

    /// Marks it as a quorum of members that hold data.
    pub fn quorum(mut self) -> Self {
        self.traits.class = Class::Etcd;
        self
    }

    /// Removes the implied dependency on the guest's API server.
    pub fn independent(mut self) -> Self {
        self.traits.independent = true;
        self
    }

    /// Declares its certificate authorities.
    pub fn with_authorities(mut self, authorities: Authorities) -> Self {
        self.authorities = Some(authorities);
        self
    }

    /// Declares its serving and client certificates.
    pub fn with_certificates(mut self, certificates: Certificates) -> Self {
        self.certificates = Some(certificates);
        self
    }

    /// Declares Services and Routes in addition to those in its manifests.
    pub fn published_by(mut self, publication: Publication) -> Self {
        self.publication = Some(publication);
        self
    }

    /// Declares which of its metrics are collected.
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Declares the Deployments that it creates itself. It is rolled out only when they are.
    pub fn operands(mut self, operands: Operands) -> Self {
        self.operands = operands;
        self
    }

    /// Gives its pods access to the management cluster's API server.
    pub fn management_api(mut self) -> Self {
        self.traits.management_api = true;
        self
    }

    /// Mounts the token of its service account although it has no access to the management cluster's API server: its
    /// program does not start without one.
    pub fn mounts_token(mut self) -> Self {
        self.traits.token = true;
        self
    }

    /// Declares that it uses Cluster API in the management cluster. Its Deployment gets the label by which a migration
    /// finds and stops it.
    pub fn uses_capi(mut self, capi: CapiUse) -> Self {
        self.capi = capi;
        self
    }

    /// Adapts the workload before the common pod settings are applied.
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
        let invalid = move |source| Error::Manifest {
            component,
            file: file.to_owned(),
            kind: std::any::type_name::<K>(),
            source: Box::new(source),
        };
        self.rules.entry(file).or_default().adapt = Some(Box::new(move |context, object| {
            let type_meta = (object["apiVersion"].clone(), object["kind"].clone());
            let mut typed: K = serde_json::from_value(object).map_err(invalid)?;
            adapt(context, &mut typed)?;
            let mut object = without_nulls(serde_json::to_value(typed).map_err(invalid)?);
            (object["apiVersion"], object["kind"]) = type_meta;
            Ok(object)
        }));
        self
    }

    /// Creates the object of a manifest only if the predicate is true; otherwise deletes it.
    pub fn manifest_if(mut self, file: &'static str, enabled: Predicate) -> Self {
        self.rules.entry(file).or_default().enabled = Some(enabled);
        self
    }

    /// Marks the object of a manifest as written by PKI, because it holds certificates.
    pub fn pki_managed(mut self, file: &'static str) -> Self {
        self.rules.entry(file).or_default().writer = Writer::Pki;
        self
    }

    /// Creates the component only if the predicate is true; otherwise deletes its objects.
    pub fn enabled_if(mut self, enabled: Predicate) -> Self {
        self.enabled = Some(enabled);
        self
    }

    /// Deletes the live workload before the component is written if the predicate is true, for one of an earlier release
    /// with another selector: selectors are immutable.
    pub fn replaces(mut self, is_old: fn(&Value) -> bool) -> Self {
        self.replaces = Some(is_old);
        self
    }

    /// Declares dependencies in addition to `kube-apiserver`, on which nearly all components depend.
    pub fn depends_on(mut self, components: &'static [&'static str]) -> Self {
        self.depends_on = components;
        self
    }

    /// Adds a konnectivity proxy for access to the guest's network.
    pub fn konnectivity(mut self, proxy: Konnectivity) -> Self {
        self.konnectivity = Some(proxy);
        self
    }

    /// Adds a token minter for a service account of the guest.
    pub fn minter(mut self, minter: Minter) -> Self {
        self.minters.push(minter);
        self
    }

    /// Adds an init container that waits for the guest's API server.
    pub fn prober(mut self, prober: Prober) -> Self {
        self.prober = Some(prober);
        self
    }

    /// Adds a kubeconfig for a service account of the guest.
    pub fn service_account_kubeconfig(mut self, kubeconfig: ServiceAccountKubeconfig) -> Self {
        self.service_account = Some(kubeconfig);
        self
    }

    /// Whether the component is enabled for the control plane.
    pub fn is_enabled(&self, context: &Context<'_>) -> bool {
        context.predicates == super::Predicates::Ignored
            || self.enabled.is_none_or(|enabled| enabled(context))
    }

    /// Its manifests, sorted by name.
    pub fn assets(&self) -> &'static [Asset] {
        self.assets
    }

    /// The manifests, except the workload, that the declaration mentions.
    pub fn declared_manifests(&self) -> impl Iterator<Item = &'static str> {
        self.rules.keys().copied()
    }

    /// All its certificates, including the one of its service account in the guest.
    pub fn certificates(&self, context: &Context<'_>) -> Vec<Leaf> {
        let mut all = self
            .certificates
            .map(|certificates| certificates(context))
            .unwrap_or_default();
        // A disabled component has no Secret with a kubeconfig.
        let account = self.service_account.as_ref();
        let account = account.filter(|_| self.is_enabled(context)).map(|account| {
            let secret = self.service_account_secret();
            certificate::account(&secret, account.namespace, account.name)
        });
        all.extend(account);
        all
    }

    /// Its certificate authorities.
    pub fn authorities(&self, context: &Context<'_>) -> Vec<Authority> {
        let authorities = self.authorities.map(|authorities| authorities(context));
        authorities.unwrap_or_default()
    }

    /// Whether the operator runs it. A component without manifests only declares certificates, Services and Routes.
    pub fn has_workload(&self) -> bool {
        !self.assets.is_empty()
    }

    /// Returns the API version and kind of each manifest.
    pub fn kinds(&self) -> Result<Vec<(String, String)>> {
        let kinds = self.assets.iter().map(|asset| asset.kind(self.name));
        kinds.collect()
    }

    /// How it is published, in addition to the Services in its manifests.
    pub fn publication(&self) -> Option<&Publication> {
        self.publication.as_ref()
    }

    /// Which of its metrics telemetry collects: a Prometheus relabel action, and a regular expression for names.
    pub fn telemetry(&self) -> Option<(&'static str, &'static str)> {
        self.metrics.telemetry
    }

    /// How it uses Cluster API in the management cluster.
    pub fn capi(&self) -> CapiUse {
        self.capi
    }

    /// Its declared dependencies, without the implied ones.
    pub fn dependencies(&self) -> &'static [&'static str] {
        self.depends_on
    }

    /// Name of the Secret with its service account's kubeconfig.
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
