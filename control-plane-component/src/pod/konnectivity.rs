//! The proxy containers through which a pod reaches the guest's network.

use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec};

use super::PROGRAM;
use super::{
    Component, Context, Result, add_volume, config_volume, helper_requests, mount, secret_volume,
};

const CERT_VOLUME: &str = "konnectivity-proxy-cert";
const CA_VOLUME: &str = "konnectivity-proxy-ca";
const KUBECONFIG_PATH: &str = "/etc/kubernetes/secrets/kubeconfig";

/// Adds the proxies that the component declares.
pub(super) fn add(component: &Component, context: &Context<'_>, pod: &mut PodSpec) -> Result<()> {
    let Some(proxy) = &component.konnectivity else {
        return Ok(());
    };
    let kubeconfig = proxy.kubeconfig_volume.unwrap_or("kubeconfig");
    let image = context.release.image("controlplane-operator")?;
    for (kind, flags) in [("https", proxy.https), ("socks5", proxy.socks5)] {
        if let Some(flags) = flags {
            pod.containers
                .push(container(kind, flags, kubeconfig, &image));
        }
    }
    add_volume(pod, secret_volume(CERT_VOLUME, "konnectivity-client"));
    add_volume(pod, config_volume(CA_VOLUME, "konnectivity-ca-bundle"));
    Ok(())
}

fn container(kind: &str, flags: &[&str], kubeconfig: &str, image: &str) -> Container {
    let run = ["run"].iter().chain(flags);
    Container {
        name: format!("konnectivity-proxy-{kind}"),
        image: Some(image.to_owned()),
        command: Some(vec![
            PROGRAM.to_owned(),
            format!("konnectivity-{kind}-proxy"),
        ]),
        args: Some(run.map(|flag| (*flag).to_owned()).collect()),
        env: Some(vec![EnvVar {
            name: "KUBECONFIG".to_owned(),
            value: Some(format!("{KUBECONFIG_PATH}/kubeconfig")),
            value_from: None,
        }]),
        resources: Some(helper_requests()),
        volume_mounts: Some(vec![
            mount(kubeconfig, KUBECONFIG_PATH),
            mount(CERT_VOLUME, "/etc/konnectivity/proxy-client"),
            mount(CA_VOLUME, "/etc/konnectivity/proxy-ca"),
        ]),
        ..Container::default()
    }
}
