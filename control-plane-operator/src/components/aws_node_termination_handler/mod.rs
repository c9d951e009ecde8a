//! aws-node-termination-handler: taints and drains nodes before AWS takes them away.

use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::platform::aws::AwsPlatformSpec;
use control_plane_component::{Component, Context, Result, Workload, assets};
use k8s_openapi::api::core::v1::Secret;

use super::cloud::ini::Ini;
use super::{cloud, edit, kubeconfig};

/// The component's name.
const NAME: &str = "aws-node-termination-handler";
/// Annotation: no node can be interrupted, so that the program is not needed.
const DISABLE: &str = "hypershift.openshift.io/disable-aws-node-termination-handler";
/// The field with the role of the program.
const ROLE: &str = "spec.platform.aws.rolesRef.nodePoolManagementARN";

pub(super) fn component() -> Component {
    Component::new(NAME, assets!("creds.yaml", "deployment.yaml"))
        .enabled_if(is_enabled)
        .minter(cloud::minter("capa-controller-manager", "svc-kubeconfig"))
        .manifest("creds.yaml", |context, secret: &mut Secret| {
            kubeconfig::put(secret, "credentials", profile(context)?);
            Ok(())
        })
        .adapt(adapt)
}

/// Whether there are a queue and a role, and the guest's API server can be reached.
fn is_enabled(context: &Context<'_>) -> bool {
    let Some(aws) = &context.spec().platform.aws else {
        return false;
    };
    let status = context.hcp.status.as_ref();
    context.is_on(PlatformType::Aws)
        && !aws.roles_ref.node_pool_management_arn.is_empty()
        && !queue(aws).is_empty()
        && status.is_some_and(|status| status.kube_config.is_some())
        && context
            .objects
            .secret("service-network-admin-kubeconfig")
            .is_some()
}

/// URL of the queue with the events of machines.
fn queue(aws: &AwsPlatformSpec) -> &str {
    let url = aws.termination_handler_queue_url.as_deref();
    url.unwrap_or_default()
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let aws = cloud::section(context.spec().platform.aws.as_ref(), "aws")?;
    if context.annotation(DISABLE).is_some()
        && let Some(replicas) = workload.replicas()
    {
        *replicas = Some(0);
    }
    let pod = edit::pod(workload);
    let handler = edit::container(pod, NAME)?;
    edit::env(handler, "AWS_REGION", aws.region.as_str());
    edit::env(handler, "QUEUE_URL", queue(aws));
    let minter = edit::container(pod, "token-minter-kube")?;
    let audience = format!("--token-audience={}", context.spec().issuer_url);
    edit::args(minter, [audience]);
    Ok(())
}

/// The AWS profile: the role that is assumed with a token of the guest.
fn profile(context: &Context<'_>) -> Result<String> {
    let aws = cloud::section(context.spec().platform.aws.as_ref(), "aws")?;
    let file = Ini::default()
        .section("default")
        .set("role_arn", (ROLE, &aws.roles_ref.node_pool_management_arn))?
        .fixed("web_identity_token_file", cloud::TOKEN)
        .fixed("sts_regional_endpoints", "regional");
    Ok(format!("{}\n", file.text()))
}
