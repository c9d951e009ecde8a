//! cluster-version-operator: applies what the release has for the inside of the guest.

mod payload;
mod version;

use super::{edit, flags};
use crate::assets;
use crate::component::{Component, Context, Prober, Result, Workload};

/// The component's name.
const NAME: &str = "cluster-version-operator";

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!("cluster-version-operator":
            "deployment.yaml",
            "service.yaml",
            "servicemonitor.yaml",
        ),
    )
    .prober(Prober {
        kubeconfig_volume: Some("kubeconfig"),
        ..Prober::default()
    })
    .adapt(adapt)
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let release = &context.spec().release_image;
    let pod = edit::pod(workload);
    let prepare = edit::container(pod, "prepare-payload")?;
    prepare.image = Some(release.clone());
    edit::args(prepare, ["-c".to_owned(), payload::script(context)]);
    let bootstrap = edit::container(pod, "bootstrap")?;
    let version = version::wanted(context).to_string();
    edit::env(bootstrap, "CLUSTER_VERSION_JSON", version);
    let operator = edit::container(pod, NAME)?;
    edit::env(operator, "RELEASE_IMAGE", release);
    edit::args(operator, flags::tls(context));
    Ok(())
}
