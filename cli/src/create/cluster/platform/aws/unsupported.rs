//! Flags of other HyperShift command lines for AWS infrastructure of kinds that this one does not create.

use clap::Args;

use crate::Usage;

/// They are accepted, so that the error says what to do instead.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct UnsupportedArgs {
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    secret_creds: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    enable_proxy: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    enable_secure_proxy: Option<String>,
}

// === impl UnsupportedArgs ===

impl UnsupportedArgs {
    /// Refuses the flags that are given.
    pub(super) fn refuse(&self) -> Result<(), Usage> {
        let given: Vec<&str> = self
            .all()
            .into_iter()
            .filter_map(|(flag, value)| value.as_ref().map(|_| flag))
            .collect();
        if given.is_empty() {
            return Ok(());
        }
        Err(Usage::new(&format!(
            "{} not supported yet: this command creates a network without a proxy; create another one first, and describe it \
             with --infra-json",
            given.join(", ")
        )))
    }

    fn all(&self) -> [(&'static str, &Option<String>); 3] {
        let Self {
            secret_creds,
            enable_proxy,
            enable_secure_proxy,
        } = self;
        [
            ("--secret-creds", secret_creds),
            ("--enable-proxy", enable_proxy),
            ("--enable-secure-proxy", enable_secure_proxy),
        ]
    }
}
