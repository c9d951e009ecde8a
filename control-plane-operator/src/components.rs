//! All components of a control plane, in the order in which they are reconciled.
//!
//! # How a component is added
//!
//! 1. Its manifests in `src/components/<name>/assets/`, one object a file. The workload is `deployment.yaml`, `statefulset.yaml`,
//!    `job.yaml` or `cronjob.yaml`; all other files are side objects, written before it in the order of their names.
//!    A manifest holds only what is the component's own: no namespace of objects, no replicas unless there is always one
//!    (then `replicas: 1`), no labels, affinities, tolerations, `/tmp`, security contexts, modes of volumes or priority
//!    classes: [`control_plane_component::pod`] adds them. `image:` is the name of an image of the release.
//!    `{{namespace}}` and `{{name}}` are those of the hosted control plane.
//! 2. Beside them a `mod.rs` of one screen:
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
//!    An adapt function fills in what depends on the hosted control plane, and nothing else. It cannot write, and looks
//!    only at its [`Context`](control_plane_component::Context): the hosted control plane and questions about it
//!    (`context.api_service_url()`, `context.tls()`, ...), the releases, the addresses of services, and objects that are
//!    there. When one of those is missing, it says so with [`Error::missing`](control_plane_component::Error::missing):
//!    the component's condition reports it, and it is tried again. `edit` has small helpers.
//! 3. A line in `running`, at its place.
//! 4. `tests/facts/<name>.txt`, what the component is like elsewhere: `HCP_FACTS=<directory> cargo test -p
//!    control-plane-operator --test components -- --ignored` makes it; differences that are right go into the table in
//!    `tests/components/parity.rs`.
//! 5. `UPDATE_GOLDEN=1 cargo test -p control-plane-operator --test components` writes `tests/golden/<name>/`; read it.
//!
//! What else can be said of a component, and what comes of it without another file being changed:
//!
//! - `with_certificates`, `with_authorities`: PKI issues and renews them, and adds authorities to bundles; `signed`: PKI
//!   writes that Secret of the manifests.
//! - `published_by`: its Services and Routes, which of them are deleted when they are published in another way, and its
//!   addresses.
//! - `metrics`: what its monitors keep for telemetry, and for the choice in ConfigMap `sre-metric-set`.
//! - `quorum`, `api_critical`, `zone_spread`, `request_serving`: replicas, priority, and where they run.
//! - `depends_on`, `independent`: what it waits for. Nearly all wait for the guest's API server.
//! - `uses_capi`: with private types it gets the proxy, and by the label on its Deployment a migration stops it.
//! - `management_api` (it has a token for the management cluster), `wanted_if` and `manifest_if`, `konnectivity`,
//!   `minter`, `service_account_kubeconfig`: see [`Component`].

mod capi;
mod cluster_autoscaler;
mod cluster_version_operator;
pub(crate) mod edit;
mod etcd;
pub(crate) mod feature_gate;
mod featuregate_generator;
mod flags;
mod hosted_cluster_config_operator;
mod ignition_server;
mod ignition_server_proxy;
mod konnectivity_agent;
mod kube_apiserver;
mod kube_controller_manager;
mod kube_scheduler;
pub(crate) mod kubeconfig;
mod machine_approver;
mod pending;
mod router;

use std::sync::LazyLock;

use control_plane_component::Component;

/// All that run, in the order in which they are reconciled.
pub fn all() -> &'static [Component] {
    let declared = Declared::get();
    declared.components.split_at(declared.running).0
}

/// All that declare something: those that run, and then those that this operator does not run yet.
pub fn declared() -> &'static [Component] {
    &Declared::get().components
}

/// All components, made once.
struct Declared {
    components: Vec<Component>,
    /// How many of them run: they come first.
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
        etcd::component(),
        featuregate_generator::component(),
        kube_apiserver::component(),
        kube_controller_manager::component(),
        kube_scheduler::component(),
        cluster_autoscaler::component(),
        cluster_version_operator::component(),
        hosted_cluster_config_operator::component(),
        machine_approver::component(),
        konnectivity_agent::component(),
        ignition_server::component(),
        ignition_server_proxy::component(),
        router::component(),
    ]
}

/// The one that can start first, and that nearly all others wait for.
pub fn first() -> Option<&'static Component> {
    all().first()
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

    /// Where the manifests of a component are.
    fn directory(component: &Component) -> PathBuf {
        let components = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/components");
        let name = component.name.replace('-', "_");
        components.join(name).join("assets")
    }

    #[test]
    fn every_manifest_in_the_directory_is_listed_in_order() {
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
    fn names_are_used_once_and_dependencies_come_first() {
        let mut before = BTreeSet::new();
        for component in all() {
            for dependency in component.dependencies() {
                assert!(
                    before.contains(dependency),
                    "{}: {dependency}",
                    component.name
                );
            }
            assert!(
                before.insert(component.name),
                "{} is there twice",
                component.name
            );
        }
    }
}
