//! The flags of the conversion webhook.

use clap::{Args, ValueEnum};

use super::{Backend, Setup, Trust};
use crate::Usage;

/// The flags of the conversion webhook.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConversionArgs {
    /// Serve every version of the private CRDs: install a webhook that has stock managers convert; needs
    /// --conversion-backend
    #[arg(long, global = true, requires = "conversion_backend")]
    pub(crate) enable_conversion_webhook: bool,

    /// A stock manager that converts its kinds, and its image: core=IMAGE, kubeadm-bootstrap=IMAGE or
    /// kubeadm-control-plane=IMAGE. May be repeated. Kinds of other managers are served at their stored version
    #[arg(
        long,
        global = true,
        value_name = "MANAGER=IMAGE",
        value_delimiter = ','
    )]
    pub(crate) conversion_backend: Vec<String>,

    /// Who issues the webhook's certificate
    #[arg(long, global = true, value_enum, default_value_t = Certificates::Auto)]
    pub(crate) conversion_certificates: Certificates,
}

/// Who issues the webhook's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Certificates {
    /// OpenShift's service CA where there is one, else hypershift install
    Auto,
    /// OpenShift's service CA
    ServiceCa,
    /// hypershift install, which renews it when less than a third of its time is left
    SelfManaged,
}

// === impl ConversionArgs ===

impl ConversionArgs {
    /// The webhook that is wanted, if one is; `overridden` takes an image to where it is mirrored.
    pub(crate) fn resolve(
        &self,
        namespace: &str,
        overridden: impl Fn(&str) -> String,
    ) -> Result<Option<Setup>, Usage> {
        if !self.enable_conversion_webhook {
            return Ok(None);
        }
        let mut backends: Vec<(Backend, String)> = Vec::new();
        for text in &self.conversion_backend {
            let (backend, image) = parse(text)?;
            if backends.iter().any(|(known, _)| *known == backend) {
                let message = format!("--conversion-backend {}= is given twice", backend.name());
                return Err(Usage::new(&message));
            }
            backends.push((backend, overridden(image)));
        }
        // Whatever the order of the flags, the same objects come of them.
        backends.sort();
        Ok(Some(Setup {
            namespace: namespace.to_owned(),
            backends,
            trust: Trust::Undecided(self.conversion_certificates),
        }))
    }
}

fn parse(text: &str) -> Result<(Backend, &str), Usage> {
    let pair = text.split_once('=').and_then(|(name, image)| {
        let backend = Backend::ALL.into_iter().find(|one| one.name() == name)?;
        (!image.trim().is_empty()).then_some((backend, image))
    });
    pair.ok_or_else(|| {
        let names = Backend::ALL.map(Backend::name).join(", ");
        Usage::new(&format!(
            "--conversion-backend {text:?}: write MANAGER=IMAGE, where the manager is one of {names}"
        ))
    })
}
