//! The containers that ask the guest for tokens of its service accounts.

use api::hypershift::v1beta1::platform::PlatformType;
use k8s_openapi::api::core::v1::{Container, ExecAction, PodSpec, Probe};

use super::{Component, Context, PROGRAM, Result, add_volume, empty_volume, mount, small_requests};
use crate::declaration::{Minter, TokenFor, TokenFrom};

const OPENSHIFT_PATH: &str = "/var/run/secrets/openshift/serviceaccount";
const KUBERNETES_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Adds those that the component asks for, as native sidecars: they run before all others.
pub(super) fn add(component: &Component, context: &Context<'_>, pod: &mut PodSpec) -> Result<()> {
    let wanted = component
        .minters
        .iter()
        .filter(|minter| minter.is_wanted(context));
    for minter in wanted {
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
    /// A cloud that does not federate needs no token.
    fn is_wanted(&self, context: &Context<'_>) -> bool {
        self.for_ == TokenFor::ApiServer
            || matches!(context.platform(), PlatformType::Aws | PlatformType::Azure)
            || context.predicates == crate::Predicates::Ignored
                && !matches!(context.platform(), PlatformType::IbmCloud)
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

    /// Where the main container finds the token.
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
            resources: Some(small_requests()),
            restart_policy: (!self.oneshot).then(|| "Always".to_owned()),
            startup_probe: (!self.oneshot).then(|| file_exists(&token)),
            volume_mounts: Some(mounts),
            ..Container::default()
        }
    }
}

/// The image holds this program and nothing else, so it looks for the file itself.
fn file_exists(path: &str) -> Probe {
    let command = [PROGRAM, "file-exists", path];
    Probe {
        exec: Some(ExecAction {
            command: Some(command.map(str::to_owned).into()),
        }),
        period_seconds: Some(1),
        failure_threshold: Some(30),
        ..Probe::default()
    }
}
