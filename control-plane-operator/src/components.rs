//! All components of a control plane, in reconcile order.
//!
//! # How to add a component
//!
//! 1. Put its manifests into `src/components/<name>/assets/`, one object per file. The workload is `deployment.yaml`,
//!    `statefulset.yaml`, `job.yaml` or `cronjob.yaml`; all other files are written before it, sorted by name. A
//!    manifest holds only what is specific to the component: no namespaces, no replicas unless there is always one
//!    (then `replicas: 1`), no common labels, affinities, tolerations, `/tmp`, security contexts, volume modes or
//!    priority classes, because [`control_plane_component::pod`] adds them. `image:` is the name of an image of the
//!    release. `{{namespace}}` and `{{name}}` are those of the hosted control plane.
//! 2. Add a short `mod.rs`:
//!
//!    ```ignore
//!    //! kube-scheduler: puts the guest's pods on nodes.
//!
//!    mod config;
//!
//!    pub(super) fn component() -> Component {
//!        Component::new(NAME, assets!("config.yaml", "deployment.yaml", "kubeconfig.yaml"))
//!            .zone_spread()                                    // replicas in different zones
//!            .prober(Prober::default())                        // waits for the guest's API server
//!            .manifest("config.yaml", config::adapt)           // fn(&Context, &mut ConfigMap) -> Result<()>
//!            .manifest("kubeconfig.yaml", kubeconfig::service("kube-scheduler-client"))
//!            .adapt(adapt)                                     // fn(&Context, &mut Workload) -> Result<()>
//!    }
//!    ```
//!
//!    An adapt function sets what depends on the hosted control plane. It performs no I/O and reads only its
//!    [`Context`](control_plane_component::Context): the hosted control plane and derived properties
//!    (`context.api_service_url()`, `context.tls()`, ...), the releases, addresses of services, and existing objects.
//!    When an input is missing, it returns [`Error::missing`](control_plane_component::Error::missing), which is
//!    reported in the component's condition and retried. `edit` has helpers.
//! 3. Add a line to `running`, in reconcile order.
//! 4. Generate `tests/facts/<name>.txt`, the reference of the component: `HCP_FACTS=<directory> cargo test -p
//!    control-plane-operator --test components -- --ignored` writes it; intended differences go into the table in
//!    `tests/components/parity/allowed.rs`.
//! 5. `UPDATE_GOLDEN=1 cargo test -p control-plane-operator --test components` writes `tests/golden/<name>/`; review
//!    it.
//!
//! Further declarations, which need no change in other files:
//!
//! - `with_certificates`, `with_authorities`: PKI issues and renews them, and adds authorities to bundles;
//!   `pki_managed`: PKI writes that Secret of the manifests.
//! - `published_by`: its Services and Routes, which are deleted when the publishing strategy changes, and its
//!   addresses.
//! - `metrics`: which series its monitors keep for telemetry, and for ConfigMap `sre-metric-set`.
//! - `quorum`, `api_critical`, `zone_spread`, `request_serving`: replicas, priority and scheduling.
//! - `depends_on`, `independent`: its dependencies. Nearly all components depend on the guest's API server.
//! - `operands`: Deployments that it creates itself, which must be rolled out, too.
//! - `uses_capi`: with private types it gets the proxy sidecar; a migration finds and stops its Deployment by a label.
//! - `management_api` (it has a token for the management cluster), `enabled_if` and `manifest_if`, `konnectivity`,
//!   `minter`, `service_account_kubeconfig`: see [`Component`].

mod audit;
mod aws_cloud_controller_manager;
mod aws_node_termination_handler;
mod azure_cloud_controller_manager;
mod capi;
mod catalog_operator;
pub(crate) mod catalogs;
mod certified_operators_catalog;
pub(crate) mod cloud;
mod cloud_credential_operator;
mod cluster_autoscaler;
mod cluster_image_registry_operator;
mod cluster_network_operator;
mod cluster_node_tuning_operator;
mod cluster_policy_controller;
mod cluster_storage_operator;
pub(crate) mod cluster_version_operator;
mod community_operators_catalog;
mod control_plane_pki_operator;
mod controller_config;
mod csi_snapshot_controller_operator;
mod dns_operator;
pub(crate) mod edit;
mod endpoint_resolver;
mod etcd;
mod etcd_client;
pub(crate) mod feature_gate;
mod featuregate_generator;
mod flags;
mod gcp_cloud_controller_manager;
pub(crate) mod go_duration;
mod hosted_cluster_config_operator;
mod ignition_server;
mod ignition_server_proxy;
mod ingress_operator;
mod konnectivity_agent;
mod kube_apiserver;
mod kube_controller_manager;
mod kube_scheduler;
mod kube_storage_version_migrator;
pub(crate) mod kubeconfig;
mod kubevirt_cloud_controller_manager;
mod kubevirt_csi_controller;
mod machine_approver;
mod managed_identity;
mod metrics_forwarding;
mod metrics_proxy;
pub(crate) mod oauth_openshift;
mod observed;
mod olm;
mod olm_collect_profiles;
mod olm_operator;
mod openshift_apiserver;
mod openshift_controller_manager;
mod openshift_controllers;
mod openshift_oauth_apiserver;
mod openshift_route_controller_manager;
mod openstack_cloud_controller_manager;
mod packageserver;
mod pending;
mod powervs_cloud_controller_manager;
mod readiness;
mod redhat_operators_catalog;
mod router;
pub(crate) mod serving;

use std::sync::LazyLock;

use control_plane_component::Component;

/// Components with manifests, in reconcile order.
pub fn all() -> &'static [Component] {
    let declared = Declared::get();
    declared.components.split_at(declared.running).0
}

/// All declared components: those with a workload, then those that this operator does not run yet.
pub fn declared() -> &'static [Component] {
    &Declared::get().components
}

/// All components, created once.
struct Declared {
    components: Vec<Component>,
    /// Number of components with a workload; they come first.
    running: usize,
}

// === impl Declared ===

impl Declared {
    fn get() -> &'static Self {
        static DECLARED: LazyLock<Declared> = LazyLock::new(|| {
            let mut components = running();
            let running = components.len();
            components.extend(pending::components());
            Declared {
                components,
                running,
            }
        });
        &DECLARED
    }
}

fn running() -> Vec<Component> {
    vec![
        control_plane_pki_operator::component(),
        etcd::component(),
        featuregate_generator::component(),
        kube_apiserver::component(),
        kube_controller_manager::component(),
        kube_scheduler::component(),
        openshift_apiserver::component(),
        openshift_oauth_apiserver::component(),
        cluster_autoscaler::component(),
        cluster_version_operator::component(),
        openshift_controller_manager::component(),
        openshift_route_controller_manager::component(),
        cluster_policy_controller::component(),
        oauth_openshift::component(),
        hosted_cluster_config_operator::component(),
        aws_cloud_controller_manager::component(),
        azure_cloud_controller_manager::component(),
        kubevirt_cloud_controller_manager::component(),
        openstack_cloud_controller_manager::component(),
        powervs_cloud_controller_manager::component(),
        gcp_cloud_controller_manager::component(),
        cloud_credential_operator::component(),
        cluster_storage_operator::component(),
        kubevirt_csi_controller::component(),
        cluster_network_operator::component(),
        cluster_node_tuning_operator::component(),
        dns_operator::component(),
        machine_approver::component(),
        aws_node_termination_handler::component(),
        ingress_operator::component(),
        csi_snapshot_controller_operator::component(),
        cluster_image_registry_operator::component(),
        konnectivity_agent::component(),
        ignition_server::component(),
        ignition_server_proxy::component(),
        endpoint_resolver::component(),
        metrics_proxy::component(),
        router::component(),
        kube_storage_version_migrator::component(),
        catalog_operator::component(),
        olm_operator::component(),
        packageserver::component(),
        olm_collect_profiles::component(),
        redhat_operators_catalog::component(),
        certified_operators_catalog::component(),
        community_operators_catalog::component(),
    ]
}

/// etcd, on which nearly all others depend.
pub fn etcd() -> Option<&'static Component> {
    all().iter().find(|component| component.name == etcd::NAME)
}

#[cfg(test)]
pub(crate) mod example;
#[cfg(test)]
mod folds;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    /// Directory of a component's manifests.
    fn directory(component: &Component) -> PathBuf {
        let components = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/components");
        let name = component.name.replace('-', "_");
        components.join(name).join("assets")
    }

    #[test]
    fn all_manifests_are_listed_in_order() {
        let example = example::component();
        for component in all().iter().chain([&example]) {
            let listed: Vec<_> = component.assets().iter().map(|asset| asset.file).collect();
            assert!(listed.is_sorted(), "{}: {listed:?}", component.name);
            let files = std::fs::read_dir(directory(component)).unwrap();
            let files: BTreeSet<_> = files
                .map(|file| file.unwrap().file_name().into_string().unwrap())
                .collect();
            let listed = listed.into_iter().map(str::to_owned).collect();
            assert_eq!(files, listed, "{}", component.name);
            for file in component.declared_manifests() {
                assert!(
                    files.contains(file),
                    "{} has a rule for {file}",
                    component.name
                );
            }
        }
    }

    #[test]
    fn component_names_are_unique_and_dependencies_first() {
        let pending = declared().iter().filter(|it| !it.has_workload());
        let pending: BTreeSet<_> = pending.map(|it| it.name).collect();
        let mut before = BTreeSet::new();
        for component in all() {
            for dependency in component.dependencies() {
                assert!(
                    before.contains(dependency) || pending.contains(dependency),
                    "{}: {dependency}",
                    component.name
                );
            }
            assert!(
                before.insert(component.name),
                "{} is declared twice",
                component.name
            );
        }
    }
}
