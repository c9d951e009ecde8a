//! metrics-proxy: serves metrics of the control plane to the guest's monitoring.

mod publishing;
mod targets;

use api::hypershift::v1beta1::monitoring::MetricsSet;
use control_plane_component::certificate::{Authority, Form, authority};
use control_plane_component::{Component, Context, Result, Workload, assets, names};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::{edit, kubeconfig, metrics_forwarding};

/// The component's name.
const NAME: &str = "metrics-proxy";
/// Signs its serving certificate; the guest trusts it.
const AUTHORITY: Authority = authority("metrics-proxy-ca-cert", "metrics-proxy-ca").form(Form::Tls);

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "ca.yaml",
            "config.yaml",
            "deployment.yaml",
            "route.yaml",
            "service.yaml",
            "serviceaccount.yaml",
            "serving-cert.yaml",
        ),
    )
    .depends_on(&["endpoint-resolver"])
    .request_serving()
    .with_authorities(|context| metrics_forwarding::authority(context, AUTHORITY))
    .with_certificates(|context| {
        let mut all: Vec<_> = publishing::published_host(context).into_iter().collect();
        all.extend(names::service(context, NAME));
        metrics_forwarding::serving(context, NAME, &AUTHORITY, all)
    })
    .enabled_if(metrics_forwarding::is_enabled)
    .pki_managed("ca.yaml")
    .pki_managed("serving-cert.yaml")
    .manifest("config.yaml", config)
    .manifest("route.yaml", publishing::route)
    .adapt(adapt)
}

/// Sets the configuration: where the endpoint resolver is, and what is scraped.
#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
fn config(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let targets = targets::all(context);
    let components: Vec<_> = targets.iter().map(|target| &target.config).collect();
    let config = json!({
        "endpointResolver": {
            "url": format!("https://endpoint-resolver.{}.svc", context.namespace()),
            "caFile": format!("{}/endpoint-resolver-ca/tls.crt", targets::CERTIFICATES),
        },
        "components": (!components.is_empty()).then_some(components),
    });
    let data = config_map.data.get_or_insert_default();
    data.insert("config.yaml".to_owned(), kubeconfig::yaml(&config));
    Ok(())
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let pod = edit::pod(workload);
    let files = targets::all(context).into_iter();
    targets::mount(pod, NAME, files.flat_map(|target| target.files))?;
    let set = json!(metrics_set(context));
    let set = set.as_str().unwrap_or_default().to_owned();
    let proxy = edit::container(pod, NAME)?;
    edit::args(proxy, ["--metrics-set".to_owned(), set]);
    Ok(())
}

/// The forwarded set; by default the one that the management cluster collects.
fn metrics_set(context: &Context<'_>) -> MetricsSet {
    let monitoring = context.spec().monitoring.as_ref();
    let forwarding = monitoring.and_then(|monitoring| monitoring.metrics_forwarding.as_ref());
    forwarding
        .and_then(|forwarding| forwarding.metrics_set)
        .or(monitoring.and_then(|monitoring| monitoring.metrics_set))
        .or(context.settings.metrics_set)
        .unwrap_or(MetricsSet::All)
}
