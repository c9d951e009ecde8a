//! Flags of other HyperShift command lines that create AWS infrastructure, which this one does not do yet.

use clap::Args;

use crate::Usage;

/// They are accepted, so that the error says what to do instead.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct UnsupportedArgs {
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    aws_creds: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    sts_creds: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    secret_creds: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    role_arn: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    vpc_owner_aws_creds: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    zones: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    vpc_cidr: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    enable_proxy: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    enable_secure_proxy: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    single_nat_gateway: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    public_only: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    auto_node: Option<String>,
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
            "{} not supported yet: this command creates no AWS infrastructure and needs no AWS credentials; create \
             network and IAM roles first, and describe them with --infra-json and --iam-json",
            given.join(", ")
        )))
    }

    fn all(&self) -> [(&'static str, &Option<String>); 12] {
        let Self {
            aws_creds,
            sts_creds,
            secret_creds,
            role_arn,
            vpc_owner_aws_creds,
            zones,
            vpc_cidr,
            enable_proxy,
            enable_secure_proxy,
            single_nat_gateway,
            public_only,
            auto_node,
        } = self;
        [
            ("--aws-creds", aws_creds),
            ("--sts-creds", sts_creds),
            ("--secret-creds", secret_creds),
            ("--role-arn", role_arn),
            ("--vpc-owner-aws-creds", vpc_owner_aws_creds),
            ("--zones", zones),
            ("--vpc-cidr", vpc_cidr),
            ("--enable-proxy", enable_proxy),
            ("--enable-secure-proxy", enable_secure_proxy),
            ("--single-nat-gateway", single_nat_gateway),
            ("--public-only", public_only),
            ("--auto-node", auto_node),
        ]
    }
}
