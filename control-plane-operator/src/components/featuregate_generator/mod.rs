//! featuregate-generator: renders the features of the feature set with the release's program, for the other components.

use control_plane_component::{Component, Context, Result, Workload, assets};

use super::{edit, feature_gate};

pub(super) fn component() -> Component {
    Component::new("featuregate-generator", assets!("job.yaml"))
        .independent()
        .management_api()
        .adapt(adapt)
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let pod = edit::pod(workload);
    let version = &context.user_release.version;
    let render = edit::container(pod, "render-feature-gates")?;
    edit::env(render, "PAYLOAD_VERSION", version);
    edit::env(
        render,
        "FEATURE_GATE_YAML",
        feature_gate::requested(context),
    );
    edit::env(edit::container(pod, "apply")?, "PAYLOAD_VERSION", version);
    Ok(())
}
