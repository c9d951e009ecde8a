//! Access of the operator to metrics of the management cluster, with which it evaluates the risks of updates.

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::pod::NEED_METRICS;
use control_plane_component::settings::MonitoringStack;
use control_plane_component::{Context, Result, Workload};

use super::{NAME, edit};

/// The certificate authority of the Prometheus, which the platform adds to tokens.
const AUTHORITY: &str = "/var/run/secrets/kubernetes.io/serviceaccount/service-ca.crt";
/// The Prometheus of the observability operator.
const RHOBS: &str =
    "http://hypershift-monitoring-stack-prometheus.openshift-observability-operator.svc:9090";
/// The tag of clusters that Red Hat manages: on AWS, the observability operator has their metrics.
const MANAGED: (&str, &str) = ("red-hat-managed", "true");

/// Whether the operator reads metrics: a predicate of manifests.
pub(super) fn are_read(context: &Context<'_>) -> bool {
    let settings = context.settings;
    settings.version_metrics || settings.monitoring == MonitoringStack::Rhobs && is_managed(context)
}

fn is_managed(context: &Context<'_>) -> bool {
    let aws = context.spec().platform.aws.as_ref();
    let mut tags = aws.iter().flat_map(|aws| &aws.resource_tags);
    context.is_on(PlatformType::Aws)
        && tags.any(|tag| (tag.key.as_str(), tag.value.as_str()) == MANAGED)
}

pub(super) fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    if !are_read(context) {
        return Ok(());
    }
    let metadata = workload.template().metadata.get_or_insert_default();
    for marks in [&mut metadata.labels, &mut metadata.annotations] {
        let marks = marks.get_or_insert_default();
        marks.insert(NEED_METRICS.to_owned(), "true".to_owned());
    }
    let pod = edit::pod(workload);
    pod.service_account_name = Some(NAME.to_owned());
    let flags = [
        "--use-dns-for-services=true".to_owned(),
        format!("--metrics-ca-bundle-file={AUTHORITY}"),
        format!("--metrics-url={}", url(context)),
    ];
    edit::args(edit::container(pod, NAME)?, flags);
    Ok(())
}

fn url(context: &Context<'_>) -> String {
    let settings = context.settings;
    match (&settings.version_metrics_url, settings.monitoring) {
        (Some(url), _) => url.clone(),
        (None, MonitoringStack::Rhobs) => RHOBS.to_owned(),
        (None, MonitoringStack::Platform) => format!(
            "https://thanos-querier.openshift-monitoring.svc:9092?namespace={}",
            context.namespace()
        ),
    }
}
