//! A flag of other HyperShift command lines that this one does not have.

use clap::Args;

use crate::Usage;

/// It is accepted, so that the error says what to do instead.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct UnsupportedArgs {
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    secret_creds: Option<String>,
}

// === impl UnsupportedArgs ===

impl UnsupportedArgs {
    /// Refuses the flag if it is given.
    pub(super) fn refuse(&self) -> Result<(), Usage> {
        if self.secret_creds.is_none() {
            return Ok(());
        }
        Err(Usage::new(
            &"--secret-creds is not supported yet: use --aws-creds, or --sts-creds and --role-arn",
        ))
    }
}
