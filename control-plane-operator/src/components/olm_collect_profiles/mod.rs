//! olm-collect-profiles: stores profiles of the OLM operators for support cases, on a schedule.

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::{Component, Context, Result, Workload, assets};
use k8s_openapi::api::core::v1::Secret;

pub(super) fn component() -> Component {
    Component::new(
        "olm-collect-profiles",
        assets!(
            "config.yaml",
            "cronjob.yaml",
            "pprof-cert.yaml",
            "role.yaml",
            "rolebinding.yaml",
            "serviceaccount.yaml",
        ),
    )
    .management_api()
    .enabled_if(|context| !context.is_on(PlatformType::IbmCloud))
    .manifest("pprof-cert.yaml", keep_certificate)
    .adapt(adapt)
}

/// The program issues this certificate itself: what it wrote stays.
#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
fn keep_certificate(context: &Context<'_>, secret: &mut Secret) -> Result<()> {
    let issued = context.objects.secret_value("pprof-cert", "tls.crt");
    if issued.is_some_and(|certificate| !certificate.is_empty()) {
        // Fields that are not applied are left to their writer.
        secret.data = None;
    }
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    if let Workload::CronJob(job) = workload {
        job.spec.get_or_insert_default().schedule = schedule(context.namespace());
    }
    Ok(())
}

/// A time of the day that is different for each control plane, so that their Jobs do not all run at once: the name of
/// the namespace as a big-endian number, modulo the minutes of an hour and the hours of a day.
fn schedule(namespace: &str) -> String {
    let modulo = |divisor: u32| {
        let bytes = namespace.bytes().map(u32::from);
        bytes.fold(0, |rest, byte| (rest * 256 + byte) % divisor)
    };
    format!("{} {} * * *", modulo(60), modulo(24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedule_follows_from_the_namespace() {
        for (namespace, expected) in [
            ("hcp-namespace", "41 5 * * *"),
            ("test-namespace", "9 21 * * *"),
            ("another-namespace", "29 5 * * *"),
            ("", "0 0 * * *"),
        ] {
            assert_eq!(schedule(namespace), expected, "{namespace}");
        }
    }
}
