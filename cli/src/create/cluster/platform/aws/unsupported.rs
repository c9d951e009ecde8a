//! Flags of other HyperShift command lines for AWS infrastructure of kinds that this one does not create.

use clap::Args;

use crate::Usage;

/// They are accepted, so that the error says what to do instead.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct UnsupportedArgs {
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    secret_creds: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    vpc_owner_aws_creds: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    enable_proxy: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    enable_secure_proxy: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    use_rosa_managed_policies: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    shared_role: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    private_zones_in_cluster_account: Option<String>,
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
            "{} not supported yet: this command creates a network without a proxy in one account, and a role for each \
             component; create others first, and describe them with --infra-json and --iam-json",
            given.join(", ")
        )))
    }

    fn all(&self) -> [(&'static str, &Option<String>); 7] {
        let Self {
            secret_creds,
            vpc_owner_aws_creds,
            enable_proxy,
            enable_secure_proxy,
            use_rosa_managed_policies,
            shared_role,
            private_zones_in_cluster_account,
        } = self;
        [
            ("--secret-creds", secret_creds),
            ("--vpc-owner-aws-creds", vpc_owner_aws_creds),
            ("--enable-proxy", enable_proxy),
            ("--enable-secure-proxy", enable_secure_proxy),
            ("--use-rosa-managed-policies", use_rosa_managed_policies),
            ("--shared-role", shared_role),
            (
                "--private-zones-in-cluster-account",
                private_zones_in_cluster_account,
            ),
        ]
    }
}
