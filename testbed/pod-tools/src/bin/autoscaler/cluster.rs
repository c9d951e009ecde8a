//! Reads Cluster API's objects and the hosted cluster, and scales.

use std::path::Path;

use jiff::Timestamp;
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use serde_json::{Value, json};

use crate::flags::Flags;
use crate::model::{DELETE, Group, Machine, Node, Pod, is_scaled};
use crate::plan::Seen;

const CORE: &str = "cluster.x-k8s.io";
const DEPLOYMENTS: &str = "machinedeployments";
const SETS: &str = "machinesets";

pub(crate) type Failure = Box<dyn std::error::Error>;

/// The two clusters.
pub(crate) struct Cluster {
    namespace: String,
    management: Client,
    guest: Client,
    /// The groups of the management cluster, with the versions that it prefers.
    versions: Vec<(String, String)>,
}

// === impl Cluster ===

impl Cluster {
    /// Connects with the credentials of now: they are renewed while this program runs.
    pub(crate) async fn connect(flags: &Flags) -> Result<Self, Failure> {
        let management = match &flags.cloud_config {
            Some(file) => of_file(file).await?,
            None => Client::try_from(Config::incluster()?)?,
        };
        let groups = management.list_api_groups().await?.groups;
        let versions = groups.into_iter().filter_map(|group| {
            let preferred = group.preferred_version?;
            Some((group.name, preferred.version))
        });
        Ok(Self {
            namespace: flags.namespace.clone(),
            versions: versions.collect(),
            guest: of_file(&flags.kubeconfig).await?,
            management,
        })
    }

    /// What there is. Without groups that may be scaled, the hosted cluster is left alone.
    pub(crate) async fn see(&self) -> Result<Seen, Failure> {
        let groups = self.groups().await?;
        if groups.is_empty() {
            return Ok(Seen::default());
        }
        let nodes = of_guest(&self.guest, "nodes", "Node").await?;
        let pods = of_guest(&self.guest, "pods", "Pod").await?;
        Ok(Seen {
            groups,
            nodes: nodes.iter().map(Node::read).collect(),
            pods: pods.iter().filter_map(Pod::read).collect(),
        })
    }

    /// Sets the replicas of a group by its subresource, unless another program has changed it.
    pub(crate) async fn scale(&self, group: &Group, replicas: i64) -> Result<(), Failure> {
        let kind = match group.plural {
            DEPLOYMENTS => "MachineDeployment",
            _ => "MachineSet",
        };
        let api = self.api(CORE, kind, group.plural)?;
        let mut scale = api.get_scale(&group.name).await?;
        let spec = scale.spec.get_or_insert_default();
        spec.replicas = Some(i32::try_from(replicas)?);
        api.replace_scale(&group.name, &PostParams::default(), &scale)
            .await?;
        Ok(())
    }

    /// Has Cluster API delete this machine before others.
    pub(crate) async fn mark(&self, machine: &str) -> Result<(), Failure> {
        let api = self.api(CORE, "Machine", "machines")?;
        let now = Timestamp::now().to_string();
        let patch = json!({ "metadata": { "annotations": { DELETE: now } } });
        api.patch(machine, &PatchParams::default(), &Patch::Merge(&patch))
            .await?;
        Ok(())
    }

    async fn groups(&self) -> Result<Vec<Group>, Failure> {
        let deployments = self.list("MachineDeployment", DEPLOYMENTS).await?;
        let sets = self.list("MachineSet", SETS).await?;
        let machines = self.list("Machine", "machines").await?;
        let of_sets = |is_meant: &dyn Fn(&Value) -> bool| -> Vec<Machine> {
            let machines = machines.iter().filter(|it| {
                it["metadata"]["deletionTimestamp"].is_null()
                    && owners(it, "MachineSet").any(|name| {
                        let mut sets = sets.iter();
                        sets.any(|set| set["metadata"]["name"] == name && is_meant(set))
                    })
            });
            machines.map(Machine::read).collect()
        };
        let mut groups = Vec::new();
        for deployment in deployments.iter().filter(|it| is_scaled(it)) {
            let name = &deployment["metadata"]["name"];
            let machines = of_sets(&|set: &Value| {
                owners(set, "MachineDeployment").any(|owner| *name == owner)
            });
            let template = self.template(deployment).await?;
            groups.extend(Group::read(DEPLOYMENTS, deployment, machines, &template));
        }
        for set in sets.iter().filter(|it| is_scaled(it)) {
            if owners(set, "MachineDeployment").next().is_some() {
                continue;
            }
            let name = &set["metadata"]["name"];
            let machines = of_sets(&|other: &Value| other["metadata"]["name"] == *name);
            let template = self.template(set).await?;
            groups.extend(Group::read(SETS, set, machines, &template));
        }
        Ok(groups)
    }

    /// The infrastructure template of a group, whose status may have the capacity of a machine.
    async fn template(&self, group: &Value) -> Result<Value, Failure> {
        let reference = &group["spec"]["template"]["spec"]["infrastructureRef"];
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let of_version = text("apiVersion").split_once('/').map(|(group, _)| group);
        let api_group = of_version.unwrap_or_else(|| text("apiGroup"));
        let kind = text("kind");
        let plural = format!("{}s", kind.to_lowercase());
        let api = self.api(api_group, kind, &plural)?;
        let found = api.get_opt(text("name")).await?;
        Ok(found.map_or(Value::Null, |it| json!(it)))
    }

    fn api(&self, group: &str, kind: &str, plural: &str) -> Result<Api<DynamicObject>, Failure> {
        let mut versions = self.versions.iter();
        let version = versions.find(|(name, _)| name == group);
        let (_, version) = version.ok_or_else(|| format!("{group} is not served"))?;
        let kind = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        let client = self.management.clone();
        Ok(Api::namespaced_with(client, &self.namespace, &resource))
    }

    async fn list(&self, kind: &str, plural: &str) -> Result<Vec<Value>, Failure> {
        let api = self.api(CORE, kind, plural)?;
        let mut listed = api.list(&ListParams::default()).await?.items;
        listed.sort_by_key(ResourceExt::name_any);
        Ok(listed.iter().map(|it| json!(it)).collect())
    }
}

async fn of_guest(client: &Client, plural: &str, kind: &str) -> Result<Vec<Value>, Failure> {
    let kind = GroupVersionKind::gvk("", "v1", kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let listed = api.list(&ListParams::default()).await?.items;
    Ok(listed.iter().map(|it| json!(it)).collect())
}

/// The names of the owners of this kind.
fn owners<'a>(object: &'a Value, kind: &str) -> impl Iterator<Item = &'a str> {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let owners = owners.into_iter().flatten();
    let owners = owners.filter(move |it| it["kind"] == kind);
    owners.filter_map(|it| it["name"].as_str())
}

async fn of_file(file: &Path) -> Result<Client, Failure> {
    let kubeconfig = Kubeconfig::read_from(file)?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    // The proxy of its pod has no TLS, and the image no authorities of the system, which the client reads otherwise.
    config.root_cert.get_or_insert_default();
    Ok(Client::try_from(config)?)
}
