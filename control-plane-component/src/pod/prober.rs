//! The init container that waits for the guest's API server and the declared prerequisites.

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};

use super::volumes::SERVICE_ACCOUNT_KUBECONFIG;
use super::{Component, Context, PROGRAM, Result, mount};

/// Adds it as the first init container.
pub(super) fn add(component: &Component, context: &Context<'_>, pod: &mut PodSpec) -> Result<()> {
    let Some(prober) = &component.prober else {
        return Ok(());
    };
    let target = format!("{}/readyz", context.api_service_url());
    let mut command = vec![
        PROGRAM.to_owned(),
        "availability-prober".to_owned(),
        "--target".to_owned(),
        target,
    ];
    let own = component
        .service_account
        .is_some()
        .then_some(SERVICE_ACCOUNT_KUBECONFIG);
    let volume = prober.kubeconfig_volume.or(own);
    if volume.is_some() {
        command.push("--kubeconfig=/var/kubeconfig/kubeconfig".to_owned());
    }
    let optional = prober.optional_apis.iter();
    let optional = optional.filter(|(capability, _)| context.has_capability(*capability));
    let apis = prober.required_apis.iter();
    for (group, version, kind) in apis.chain(optional.map(|(_, api)| api)) {
        command.push(format!("--required-api={group},{version},{kind}"));
    }
    if prober.infrastructure {
        command.push("--wait-for-infrastructure-resource".to_owned());
    }
    if let Some(pods) = prober.pods_gone {
        command.push(format!("--wait-for-labeled-pods-gone={pods}"));
    }
    if let Some(binding) = prober.cluster_role_binding {
        command.push(format!("--wait-for-cluster-rolebinding={binding}"));
    }
    let container = Container {
        name: "availability-prober".to_owned(),
        image: Some(context.release.image("availability-prober")?),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        command: Some(command),
        resources: Some(ResourceRequirements::default()),
        volume_mounts: volume.map(|volume| vec![mount(volume, "/var/kubeconfig")]),
        ..Container::default()
    };
    pod.init_containers
        .get_or_insert_default()
        .insert(0, container);
    Ok(())
}
