//! The proxy containers through which a pod reaches the guest's network.

use api::hypershift::v1beta1::configuration::proxy::ProxyConfiguration;
use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec};

use super::PROGRAM;
use super::{
    Component, Context, Result, add_volume, config_volume, helper_requests, mount, secret_volume,
};
use crate::declaration::Konnectivity;
use crate::proxy::guest_exemptions;
use crate::trust::TrustVolume;

const CERT_VOLUME: &str = "konnectivity-proxy-cert";
const CA_VOLUME: &str = "konnectivity-proxy-ca";
const TRUST_VOLUME: &str = "proxy-additional-trust-bundle";
const KUBECONFIG_PATH: &str = "/etc/kubernetes/secrets/kubeconfig";

/// A protocol of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Https,
    Socks5,
}

/// Adds the proxies that the component declares.
pub(super) fn add(component: &Component, context: &Context<'_>, pod: &mut PodSpec) -> Result<()> {
    let Some(proxy) = &component.konnectivity else {
        return Ok(());
    };
    let kubeconfig = proxy.kubeconfig_volume.unwrap_or("kubeconfig");
    let image = context.release.image("controlplane-operator")?;
    let trust = trust(context);
    let protocols = [
        (Protocol::Https, proxy.https),
        (Protocol::Socks5, proxy.socks5),
    ];
    for (protocol, flags) in protocols {
        let Some(flags) = flags else { continue };
        let mut container = container(protocol, kubeconfig, &image);
        container.args = Some(args(context, protocol, flags));
        if flags.contains(&Konnectivity::DIRECT_TO_CLOUD) {
            context.settings.proxy.set_env(&mut container, []);
        }
        let mounts = container.volume_mounts.get_or_insert_default();
        mounts.extend(trust.mounts());
        pod.containers.push(container);
    }
    add_volume(pod, secret_volume(CERT_VOLUME, "konnectivity-client"));
    add_volume(pod, config_volume(CA_VOLUME, "konnectivity-ca-bundle"));
    if let Some(volume) = trust.volume() {
        add_volume(pod, volume);
    }
    Ok(())
}

fn container(protocol: Protocol, kubeconfig: &str, image: &str) -> Container {
    let protocol = protocol.name();
    Container {
        name: format!("konnectivity-proxy-{protocol}"),
        image: Some(image.to_owned()),
        command: Some(vec![
            PROGRAM.to_owned(),
            format!("konnectivity-{protocol}-proxy"),
        ]),
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

/// The arguments: the guest's proxy, the flags of the component, and the address family.
fn args(context: &Context<'_>, protocol: Protocol, flags: &[&str]) -> Vec<String> {
    let guest = match (protocol, guest_proxy(context)) {
        (Protocol::Https, Some(proxy)) => guest_flags(context, proxy),
        (Protocol::Https, None) | (Protocol::Socks5, _) => Vec::new(),
    };
    let declared = flags.iter().map(|flag| (*flag).to_owned());
    let ipv4 = has_only_ipv4_services(context).then(|| "--prefer-ipv4=true".to_owned());
    ["run".to_owned()]
        .into_iter()
        .chain(guest)
        .chain(declared)
        .chain(ipv4)
        .collect()
}

/// Connections leave the guest's network through its proxy. Unset URLs are passed on empty.
fn guest_flags(context: &Context<'_>, proxy: &ProxyConfiguration) -> Vec<String> {
    let url = |url: &Option<String>| url.clone().unwrap_or_default();
    let flags = [
        ("--http-proxy", url(&proxy.http_proxy)),
        ("--https-proxy", url(&proxy.https_proxy)),
        ("--no-proxy", guest_exemptions(context)),
    ];
    let pairs = flags.map(|(flag, value)| [flag.to_owned(), value]);
    pairs.into_iter().flatten().collect()
}

fn guest_proxy<'a>(context: &Context<'a>) -> Option<&'a ProxyConfiguration> {
    context.spec().configuration.as_ref()?.proxy.as_ref()
}

/// Whether the guest has no IPv6 Services, so that a name with addresses of both families is reached by IPv4.
fn has_only_ipv4_services(context: &Context<'_>) -> bool {
    let networks = context.service_cidrs();
    !networks.is_empty() && networks.iter().all(|cidr| !cidr.contains(':'))
}

/// The CA certificates of users: for the guest's proxy, and for servers that the proxy connects to.
fn trust(context: &Context<'_>) -> TrustVolume {
    let mut volume = TrustVolume::new(TRUST_VOLUME);
    if let Some(bundle) = &context.spec().additional_trust_bundle {
        let file = "additional-ca-bundle.pem";
        volume.add(&bundle.name, TrustVolume::KEY, file);
    }
    let proxy = guest_proxy(context).and_then(|proxy| proxy.trusted_ca.as_ref());
    if let Some(bundle) = proxy.filter(|bundle| !bundle.name.is_empty()) {
        volume.add(&bundle.name, TrustVolume::KEY, "proxy-trusted-ca.pem");
    }
    volume
}

// === impl Protocol ===

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Socks5 => "socks5",
        }
    }
}
