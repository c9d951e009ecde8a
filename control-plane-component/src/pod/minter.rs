//! Token minter containers: they request tokens of the guest's service accounts.

use api::hypershift::v1beta1::platform::PlatformType;
use k8s_openapi::api::core::v1::{Container, ExecAction, PodSpec, Probe};

use super::{
    Component, Context, PROGRAM, Result, add_volume, empty_volume, helper_requests, mount,
};
use crate::declaration::{Minter, TokenFor, TokenFrom};
use crate::settings::ARO;

const OPENSHIFT_PATH: &str = "/var/run/secrets/openshift/serviceaccount";
/// How long the first token may take, in seconds. A minter retries by itself until the hosted API server is available, which
/// can take many minutes in a new cluster: a restart would not help, and would look like an error.
const STARTUP_SECONDS: i32 = 3600;
const KUBERNETES_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Adds the declared token minters as native sidecars, which start before the other containers.
pub(super) fn add(component: &Component, context: &Context<'_>, pod: &mut PodSpec) -> Result<()> {
    let enabled = component
        .minters
        .iter()
        .filter(|minter| minter.is_enabled(context));
    for minter in enabled {
        let image = context.release.image("token-minter")?;
        let volume = minter.volume();
        let container = minter.container(context, image);
        pod.init_containers.get_or_insert_default().push(container);
        add_volume(pod, empty_volume(&volume, Some("Memory")));
        if let Some(main) = pod.containers.first_mut() {
            let mounts = main.volume_mounts.get_or_insert_default();
            mounts.push(mount(&volume, minter.path()));
        }
    }
    Ok(())
}

impl Minter {
    /// Clouds without workload identity federation need no token, and neither do managed identities of ARO.
    fn is_enabled(&self, context: &Context<'_>) -> bool {
        if self.for_ == TokenFor::ApiServer {
            return true;
        }
        match context.platform() {
            PlatformType::Aws | PlatformType::Gcp => true,
            PlatformType::Azure => context.settings.managed_service.as_deref() != Some(ARO),
            PlatformType::IbmCloud => false,
            PlatformType::KubeVirt
            | PlatformType::Agent
            | PlatformType::OpenStack
            | PlatformType::PowerVs
            | PlatformType::None => context.predicates == crate::Predicates::Ignored,
        }
    }

    fn kind(&self) -> &'static str {
        match self.for_ {
            TokenFor::Cloud => "cloud",
            TokenFor::ApiServer => "apiserver",
        }
    }

    fn volume(&self) -> String {
        format!("{}-token", self.kind())
    }

    /// Where the main container mounts the token.
    fn path(&self) -> &'static str {
        match self.for_ {
            TokenFor::Cloud => OPENSHIFT_PATH,
            TokenFor::ApiServer => KUBERNETES_PATH,
        }
    }

    fn container(&self, context: &Context<'_>, image: String) -> Container {
        let audience = match self.for_ {
            TokenFor::Cloud => "openshift",
            TokenFor::ApiServer => context.spec().issuer_url.as_str(),
        };
        let token = format!("{OPENSHIFT_PATH}/token");
        let mut args = vec![
            format!("--token-audience={audience}"),
            format!("--service-account-namespace={}", self.namespace),
            format!("--service-account-name={}", self.name),
            format!("--token-file={token}"),
        ];
        let mut mounts = vec![mount(&self.volume(), OPENSHIFT_PATH)];
        match &self.kubeconfig {
            TokenFrom::Volume(volume) => {
                args.push("--kubeconfig=/etc/kubernetes/kubeconfig".to_owned());
                mounts.push(mount(volume, "/etc/kubernetes"));
            }
            TokenFrom::Secret(name) => {
                let namespace = context.namespace();
                args.push(format!("--kubeconfig-secret-namespace={namespace}"));
                args.push(format!("--kubeconfig-secret-name={name}"));
            }
        }
        if self.oneshot {
            args.push("--oneshot".to_owned());
        }
        Container {
            name: format!("{}-token-minter", self.kind()),
            image: Some(image),
            image_pull_policy: Some("IfNotPresent".to_owned()),
            command: Some(vec![PROGRAM.to_owned(), "token-minter".to_owned()]),
            args: Some(args),
            resources: Some(helper_requests()),
            restart_policy: (!self.oneshot).then(|| "Always".to_owned()),
            startup_probe: (!self.oneshot).then(|| file_exists(&token)),
            volume_mounts: Some(mounts),
            ..Container::default()
        }
    }
}

/// The image has no shell, so the probe runs this binary.
fn file_exists(path: &str) -> Probe {
    let command = [PROGRAM, "file-exists", path];
    Probe {
        exec: Some(ExecAction {
            command: Some(command.map(str::to_owned).into()),
        }),
        period_seconds: Some(1),
        failure_threshold: Some(STARTUP_SECONDS),
        ..Probe::default()
    }
}
