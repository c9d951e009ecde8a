//! The operator Deployments of one HostedCluster, and their RBAC.
//!
//! They are components like those of the control plane, rendered by the same framework, with one difference: they are
//! not owned by the HostedControlPlane. Cluster API has to outlive it to delete the machines.

mod karpenter;
mod roles;
mod tls_flags;

use std::collections::BTreeMap;

use api::annotations::cluster::IMAGE_OVERRIDES;
use api::group::CapiTypes;
use api::hypershift::v1beta1::HostedControlPlane;
use api::hypershift::v1beta1::monitoring::MetricsSet;
use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::assets;
use control_plane_component::declaration::{Minter, TokenFor};
use control_plane_component::facts::Infra;
use control_plane_component::proxy::OwnProxy;
use control_plane_component::render::{Rendered, render};
use control_plane_component::settings::{MonitoringStack, Pairs, Settings};
use control_plane_component::{
    CapiUse, Component, Context, Objects, Predicates, Release, TokenFrom, Workload, sidecar,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{PodSpec, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::ApiResource;
use payload::{Capabilities, Capability};
use serde_json::{Value, json};

use super::{Desired, Error, certificate};
use crate::facts::Facts;
use crate::hosted_cluster::operator_image::operator_image;
use crate::platform::{Infrastructure, Outside, azure, gcp, infrastructure};
use crate::{kinds, names};

/// Annotation with another image of the Cluster API controllers.
const MANAGER_IMAGE: &str = "hypershift.openshift.io/capi-manager-image";
/// The name that the manifest of the platform's controllers has for their image.
const PROVIDER_IMAGE: &str = "capi-provider";
/// The name that the manifest of Cluster API's controllers has for their image.
const CORE_IMAGE: &str = "cluster-capi-controllers";
/// The name that the provider for OpenStack has for the image of the controllers of images.
const RESOURCE_CONTROLLER: &str = "openstack-resource-controller";
/// The name that the manifest of another program of this operator has for its image.
const OWN_IMAGE: &str = "hypershift-operator";
/// API groups of the management cluster that components may write.
const SERVED: [&str; 2] = ["route.openshift.io", "image.openshift.io"];
/// The group of monitors, where the management cluster has them.
const MONITORING: &str = "monitoring.coreos.com";

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Operators {
    /// Service accounts and RBAC.
    pub(super) rbac: Vec<Desired>,
    /// What runs.
    pub(super) workloads: Vec<Desired>,
    /// Objects that must not exist.
    pub(super) obsolete: Vec<(ApiResource, String)>,
    /// Objects outside of the control plane's namespace that RBAC replaces.
    pub(super) outdated: Vec<Outside>,
}

/// Finalizers of a Deployment, while there are objects that only its pods can delete.
fn finalizers(deployment: &str) -> Option<&'static str> {
    [names::CLUSTER_API, names::CAPI_PROVIDER]
        .contains(&deployment)
        .then_some(names::COMPONENT_FINALIZER)
}

/// Builds them.
pub(super) fn build(facts: &Facts) -> Result<Operators, Error> {
    let own_image = operator_image(facts)?;
    let platform = infrastructure(facts.cluster.spec.platform.type_);
    let provider_image = platform.provider_image(facts).ok().flatten();
    let has_provider = provider_image.is_some() && facts.has_machine_management();
    let settings = settings(facts, own_image);
    let release = release(facts, &settings, provider_image)?;
    let mut hcp = HostedControlPlane::new(&facts.id.name, super::control_plane_spec(facts));
    hcp.metadata.namespace = Some(facts.namespace.clone());
    hcp.metadata.annotations = Some(facts.annotations().clone());
    // The components of the control plane see Agent as no platform; these ones do not.
    hcp.spec.platform.type_ = facts.cluster.spec.platform.type_;
    let (infra, objects) = (Infra::default(), Objects::default());
    let context = Context {
        hcp: &hcp,
        release: &release,
        user_release: &release,
        infra: &infra,
        objects: &objects,
        settings: &settings,
        predicates: Predicates::Evaluated,
    };
    let mut operators = Operators::default();
    operators.add(
        facts,
        &control_plane_operator(facts, &settings),
        &context,
        &roles::control_plane_operator(
            azure::infrastructure::mounts_certificates(facts),
            facts.cluster.spec.platform.type_ == PlatformType::Gcp,
        ),
    )?;
    operators.rbac.extend(roles::pki_operator(facts));
    if has_provider {
        operators.add_managers(facts, platform, &context)?;
    } else {
        operators.leave_out(names::CLUSTER_API);
        operators.leave_out(names::CAPI_PROVIDER);
    }
    operators.add_karpenter(facts, &settings, &context)?;
    // Components of the control plane have the sidecar, too, whether or not there is a provider.
    if facts.capi.types() == CapiTypes::Private && facts.has_machine_management() {
        operators
            .workloads
            .insert(0, Desired::typed(&sidecar::config_map(&facts.namespace)));
    }
    Ok(operators)
}

// === impl Operators ===

impl Operators {
    fn add(
        &mut self,
        facts: &Facts,
        component: &Component,
        context: &Context<'_>,
        rules: &[Value],
    ) -> Result<(), Error> {
        let rendered: Rendered = render(component, context)?;
        let role =
            Desired::new::<Role>(&facts.namespace, component.name, json!({ "rules": rules }));
        self.rbac.push(role);
        for object in rendered.objects() {
            let desired = unowned(object.clone());
            match desired.resource.kind.as_str() {
                "Deployment" => self.workloads.push(desired),
                _ => self.rbac.push(desired),
            }
        }
        Ok(())
    }

    /// The Cluster API controllers and their dependencies.
    fn add_managers(
        &mut self,
        facts: &Facts,
        platform: &'static dyn Infrastructure,
        context: &Context<'_>,
    ) -> Result<(), Error> {
        self.add(
            facts,
            &cluster_api(facts),
            context,
            &roles::cluster_api(facts),
        )?;
        self.add(
            facts,
            &provider(facts, platform),
            context,
            &roles::provider(facts, platform),
        )?;
        self.rbac.extend(roles::cluster_wide(facts));
        self.rbac.extend(platform.external_objects(facts));
        self.outdated = platform.outdated_objects(facts);
        if let Some(made) = &facts.webhook_tls {
            self.workloads
                .insert(0, certificate::desired(&facts.namespace, made));
        }
        Ok(())
    }

    fn leave_out(&mut self, name: &str) {
        let kinds = [
            ApiResource::erase::<Deployment>(&()),
            ApiResource::erase::<RoleBinding>(&()),
            ApiResource::erase::<Role>(&()),
            ApiResource::erase::<ServiceAccount>(&()),
        ];
        self.obsolete
            .extend(kinds.map(|kind| (kind, name.to_owned())));
    }
}

/// A rendered object, without owner and with the finalizer that keeps it until its objects are cleaned up.
fn unowned(mut object: Value) -> Desired {
    let metadata = &mut object["metadata"];
    if let Some(fields) = metadata.as_object_mut() {
        fields.remove("ownerReferences");
    }
    if let Some(annotations) = metadata["annotations"].as_object_mut() {
        // It is for clients that compare by it; server-side apply does not need it.
        annotations.remove(control_plane_component::render::DESIRED_STATE_HASH);
    }
    let resource = match object["kind"].as_str() {
        Some("Deployment") => {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            if let Some(finalizer) = finalizers(name) {
                object["metadata"]["finalizers"] = json!([finalizer]);
            }
            ApiResource::erase::<Deployment>(&())
        }
        Some("RoleBinding") => ApiResource::erase::<RoleBinding>(&()),
        Some("PodMonitor") => kinds::pod_monitor(),
        _ => ApiResource::erase::<ServiceAccount>(&()),
    };
    Desired {
        resource,
        body: object,
        status: None,
    }
}

fn release(
    facts: &Facts,
    settings: &Settings,
    provider_image: Option<String>,
) -> Result<Release, Error> {
    let release = facts.operated().read().ok_or(Error::NoRelease)?;
    let mut release = Release::from(release);
    // Pods are annotated with the requested release.
    facts.operated_image().clone_into(&mut release.pull_spec);
    let mut overrides = settings.image_overrides.clone();
    overrides.extend(provider_image.map(|image| (PROVIDER_IMAGE.to_owned(), image)));
    let own = facts.images.own.clone();
    overrides.extend(own.map(|image| (OWN_IMAGE.to_owned(), image)));
    let core = facts.annotations().get(MANAGER_IMAGE);
    let core = core.or(facts.images.cluster_api.as_ref()).cloned();
    overrides.extend(core.map(|image| (CORE_IMAGE.to_owned(), image)));
    let resource_controller = facts.images.resource_controller.clone();
    overrides.extend(resource_controller.map(|image| (RESOURCE_CONTROLLER.to_owned(), image)));
    Ok(release.with_overrides(&settings.own_image, &overrides))
}

fn settings(facts: &Facts, own_image: String) -> Settings {
    let overrides = IMAGE_OVERRIDES.get(facts.annotations()).ok().flatten();
    let control_planes = &facts.images.control_planes;
    let mirrors = facts
        .cluster
        .spec
        .image_content_sources
        .iter()
        .flat_map(|source| {
            let mirrors = source.mirrors.iter();
            mirrors.map(|mirror| (source.source.clone(), mirror.clone()))
        });
    Settings {
        own_image,
        image_overrides: overrides.unwrap_or_default(),
        registry_overrides: facts.images.overrides.as_flag().parse().unwrap_or_default(),
        openshift_img_overrides: Pairs(mirrors.collect()),
        insecure_registries: facts.images.insecure.clone(),
        capi_types: facts.capi.types(),
        // Control planes without a proxy must not restart when its image changes.
        capi_proxy_image: (facts.capi.types() == CapiTypes::Private)
            .then(|| facts.images.capi_proxy.clone())
            .flatten(),
        default_ingress_domain: String::new(),
        uid: facts.management.uid(&facts.namespace),
        managed_service: facts.cloud.managed_service.clone(),
        azure_key_vault_client_id: facts.cloud.azure_key_vault_client_id.clone(),
        metrics_set: facts.images.metrics_set,
        monitoring: MonitoringStack::default(),
        cert_rotation_scale: control_planes.cert_rotation_scale.clone(),
        version_metrics: control_planes.version_metrics,
        version_metrics_url: control_planes.version_metrics_url.clone(),
        proxy: OwnProxy::default(),
        served_groups: served_groups(facts),
    }
}

fn served_groups(facts: &Facts) -> Vec<String> {
    let monitoring = facts.management.monitors.then_some(MONITORING);
    let served = SERVED.into_iter().chain(monitoring);
    served.map(str::to_owned).collect()
}

fn control_plane_operator(facts: &Facts, settings: &Settings) -> Component {
    let environment = environment(facts, settings);
    let certificates = azure::infrastructure::operator_certificates(facts);
    let manifests = assets!("control-plane-operator": "deployment.yaml", "rolebinding.yaml", "serviceaccount.yaml");
    let component = Component::new(names::CONTROL_PLANE_OPERATOR, manifests).management_api();
    component.adapt(move |_, workload| {
        edit(workload, |pod| {
            let Some(container) = pod.containers.first_mut() else {
                return;
            };
            crate::platform::add(&mut container.env, environment.clone());
            for (volume, mount) in &certificates {
                crate::platform::add(&mut container.volume_mounts, json!([mount]));
                crate::platform::add(&mut pod.volumes, json!([volume]));
            }
        });
        Ok(())
    })
}

/// The environment of the control-plane-operator.
fn environment(facts: &Facts, settings: &Settings) -> Value {
    let overrides = Pairs(settings.image_overrides.clone().into_iter().collect());
    let capi = match settings.capi_types {
        CapiTypes::Private => "private",
        CapiTypes::Standard => "standard",
    };
    let mut variables = BTreeMap::from([
        ("CAPI_TYPES", capi.to_owned()),
        ("CONTROL_PLANE_OPERATOR_IMAGE", settings.own_image.clone()),
        (
            "OPERATE_ON_RELEASE_IMAGE",
            facts.cluster.spec.release.image.clone(),
        ),
    ]);
    let given = [
        (
            azure::KEY_VAULT_CLIENT,
            settings.azure_key_vault_client_id.clone(),
        ),
        ("MANAGED_SERVICE", settings.managed_service.clone()),
        ("IMAGE_CAPI_PROXY", settings.capi_proxy_image.clone()),
        ("IMAGE_OVERRIDES", Some(overrides.to_string())),
        ("INSECURE_REGISTRIES", Some(facts.images.insecure.join(","))),
        (
            "OPENSHIFT_IMG_OVERRIDES",
            Some(settings.openshift_img_overrides.to_string()),
        ),
        (
            "REGISTRY_OVERRIDES",
            Some(settings.registry_overrides.to_string()),
        ),
        (
            "DEFAULT_SECURITY_CONTEXT_UID",
            settings.uid.map(|uid| uid.to_string()),
        ),
        (
            "CREATES_AWS_SECURITY_GROUP",
            creates_security_group(facts).then(|| "true".to_owned()),
        ),
        (
            "METRICS_SET",
            settings.metrics_set.map(|set| name(set).to_owned()),
        ),
        ("CERT_ROTATION_SCALE", settings.cert_rotation_scale.clone()),
        (
            "ENABLE_CVO_MANAGEMENT_CLUSTER_METRICS_ACCESS",
            settings.version_metrics.then(|| "true".to_owned()),
        ),
        ("CVO_PROMETHEUS_URL", settings.version_metrics_url.clone()),
    ];
    let given = given
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    variables.extend(given.filter(|(_, value)| !value.is_empty()));
    let variables = variables.into_iter();
    variables
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect()
}

/// Whether node pools wait for the security group that the control-plane-operator creates.
fn creates_security_group(facts: &Facts) -> bool {
    let capabilities = Capabilities::of_labels(&facts.operator_labels);
    facts.cluster.spec.platform.type_ == PlatformType::Aws
        && capabilities.has(Capability::CreatesAwsSecurityGroup)
}

/// The name of a choice of metrics, as flags have it.
fn name(set: MetricsSet) -> &'static str {
    match set {
        MetricsSet::Telemetry => "Telemetry",
        MetricsSet::Sre => "SRE",
        MetricsSet::All => "All",
    }
}

fn cluster_api(facts: &Facts) -> Component {
    let manifests =
        assets!("cluster-api": "deployment.yaml", "rolebinding.yaml", "serviceaccount.yaml");
    let has_tls_flags = tls_flags::are_known(facts);
    Component::new(names::CLUSTER_API, manifests)
        .management_api()
        .uses_capi(CapiUse::Proxied)
        .adapt(move |context, workload| {
            if has_tls_flags {
                edit(workload, |pod| tls_flags::add(context, pod));
            }
            Ok(())
        })
}

fn provider(facts: &Facts, platform: &'static dyn Infrastructure) -> Component {
    let manifests =
        assets!("capi-provider": "deployment.yaml", "rolebinding.yaml", "serviceaccount.yaml");
    let component = Component::new(names::CAPI_PROVIDER, manifests);
    let facts_of_pod = facts.clone();
    let has_tls_flags = tls_flags::are_known(facts);
    let component = component
        .management_api()
        .uses_capi(CapiUse::Proxied)
        .adapt(move |context, workload| {
            edit(workload, |pod| {
                platform.adapt(&facts_of_pod, pod);
                if has_tls_flags {
                    tls_flags::add(context, pod);
                }
            });
            Ok(())
        });
    let account = match facts.cluster.spec.platform.type_ {
        PlatformType::Aws => Some("capa-controller-manager"),
        PlatformType::Azure => azure::infrastructure::token_account(facts),
        PlatformType::Gcp => Some(gcp::infrastructure::ACCOUNT),
        PlatformType::Agent
        | PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::None
        | PlatformType::OpenStack
        | PlatformType::PowerVs => None,
    };
    let Some(account) = account else {
        return component;
    };
    component.minter(Minter {
        for_: TokenFor::Cloud,
        namespace: "kube-system",
        name: account,
        kubeconfig: TokenFrom::Secret("service-network-admin-kubeconfig"),
        oneshot: false,
    })
}

fn edit(workload: &mut Workload, change: impl FnOnce(&mut PodSpec)) {
    if let Workload::Deployment(deployment) = workload {
        let template = &mut deployment.spec.get_or_insert_default().template;
        change(template.spec.get_or_insert_default());
    }
}
