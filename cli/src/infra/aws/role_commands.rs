//! `create operator-roles aws`, `create iam cli-role`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use kube::Api;
use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use support::aws::is_region;

use super::REGION;
use super::cli_role::check_name;
use super::client::Aws;
use super::command::write;
use super::credentials::CredentialArgs;
use super::executor::Executor;
use super::operator_roles::{OperatorRoles, Trust};
use super::scope::Scope;
use crate::Usage;
use crate::create::text;
use crate::hosted::{Hosted, refused};
use crate::install::display::{Display, print};
use crate::install::{TargetArgs, runtime};

/// Flags of both commands.
#[derive(Debug, Args)]
struct AccountArgs {
    /// Region, whose partition of AWS has the account
    #[arg(long, value_name = "NAME", env = "AWS_REGION", default_value = REGION)]
    region: String,

    /// Tags of roles that are created, separated by commas
    #[arg(long, short = 't', value_name = "KEY=VALUE", value_delimiter = ',')]
    additional_tags: Vec<String>,

    #[command(flatten)]
    credentials: CredentialArgs,

    /// Report what there is and what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,
}

/// Flags of `create operator-roles aws`.
#[derive(Debug, Args)]
pub(crate) struct CreateOperatorRolesArgs {
    /// Bucket with the documents by which AWS verifies tokens of hosted clusters
    #[arg(long, value_name = "NAME")]
    oidc_storage_provider_s3_bucket_name: String,

    /// Beginning of the names of the roles
    #[arg(long, value_name = "NAME", default_value = "hypershift")]
    name_prefix: String,

    /// URL of the management cluster's issuer of tokens, whose identity provider exists [default: that of the cluster's
    /// Authentication]
    #[arg(long, value_name = "URL", conflicts_with = "instance_role_arn")]
    oidc_issuer_url: Option<String>,

    /// ARN of the role of the management cluster's nodes, if it has no issuer that AWS trusts
    #[arg(long, value_name = "ARN")]
    instance_role_arn: Option<String>,

    /// Identifier of the hosted zone in which external-dns writes [default: all zones]
    #[arg(long, value_name = "ID")]
    route53_hosted_zone_id: Option<String>,

    /// Namespace of the operator
    #[arg(long, value_name = "NAME", default_value = "hypershift")]
    operator_namespace: String,

    /// File for the ARNs of the roles in JSON [default: standard output]
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,

    #[command(flatten)]
    account: AccountArgs,

    #[command(flatten)]
    target: TargetArgs,
}

/// Flags of `create iam cli-role`.
#[derive(Debug, Args)]
pub(crate) struct CreateCliRoleArgs {
    /// Name of the role
    #[arg(long, value_name = "NAME", default_value = "hypershift-cli-role")]
    name: String,

    #[command(flatten)]
    account: AccountArgs,
}

/// Makes calls for an account.
struct Session {
    aws: Aws,
    scope: Scope,
    display: Display,
}

// === impl AccountArgs ===

impl AccountArgs {
    /// Checks what both commands have.
    fn tags(&self) -> Result<BTreeMap<String, String>, Usage> {
        if !is_region(&self.region) {
            return Err(Usage::new(&format!(
                "--region {:?} is not a region of AWS (for example us-east-1)",
                self.region
            )));
        }
        text::pairs("--additional-tags", &self.additional_tags)
    }

    /// `name` is what roles are called after.
    fn session(&self, name: &str, session: &str) -> anyhow::Result<Session> {
        let additional = self.tags()?;
        Ok(Session {
            aws: self.credentials.connect(&self.region, session)?,
            // It is no infrastructure: roles have tags of their own.
            scope: Scope {
                infra_id: name.to_owned(),
                name: name.to_owned(),
                region: self.region.clone(),
                additional,
            },
            display: Display::new(self.quiet),
        })
    }
}

// === impl Session ===

impl Session {
    fn executor(&self) -> Executor<'_, Aws> {
        Executor {
            calls: &self.aws,
            scope: &self.scope,
            display: &self.display,
        }
    }
}

// === impl CreateOperatorRolesArgs ===

impl CreateOperatorRolesArgs {
    /// Creates the roles and describes them, or reports what would be created.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let trust = self.trust()?;
        // Mistakes are found before any request.
        self.account.tags()?;
        self.request(trust.clone().unwrap_or(Trust::Issuer(String::new())))?;
        runtime()?.block_on(Box::pin(self.create(trust)))
    }

    async fn create(&self, trust: Option<Trust>) -> anyhow::Result<()> {
        let trust = match trust {
            Some(trust) => trust,
            None => self.found_issuer().await?,
        };
        let request = self.request(trust)?;
        let session = self
            .account
            .session(&self.name_prefix, "cli-create-operator-roles")?;
        let executor = session.executor();
        if self.account.dry_run {
            return Box::pin(executor.report_operator_roles(&request)).await;
        }
        let output = Box::pin(executor.create_operator_roles(&request)).await?;
        write(&output, self.output_file.as_deref())?;
        session.display.say(&request.hint(&output));
        Ok(())
    }

    /// Who assumes the roles, if flags say so.
    fn trust(&self) -> Result<Option<Trust>, Usage> {
        if let Some(role) = &self.instance_role_arn {
            return Trust::instances(role).map(Some);
        }
        let url = self.oidc_issuer_url.as_deref();
        url.map(Trust::issuer).transpose()
    }

    fn request(&self, trust: Trust) -> Result<OperatorRoles, Usage> {
        OperatorRoles::new(
            &self.name_prefix,
            &self.operator_namespace,
            &self.oidc_storage_provider_s3_bucket_name,
            self.route53_hosted_zone_id.as_deref(),
            trust,
        )
    }

    async fn found_issuer(&self) -> anyhow::Result<Trust> {
        let hosted = Hosted::connect(&self.target.access()).await?;
        let url = issuer_of(&hosted).await?;
        Ok(Trust::issuer(&url)?)
    }
}

/// The issuer of the management cluster's tokens.
async fn issuer_of(hosted: &Hosted) -> anyhow::Result<String> {
    let kind = GroupVersionKind::gvk("config.openshift.io", "v1", "Authentication");
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = Api::all_with(hosted.client().clone(), &resource);
    let found = api.get_opt("cluster").await;
    let found =
        found.map_err(|error| refused(&error).context("failed to get Authentication cluster"))?;
    let issuer = found
        .as_ref()
        .and_then(|it| it.data["spec"]["serviceAccountIssuer"].as_str())
        .filter(|issuer| !issuer.is_empty());
    let issuer = issuer.context(
        "the management cluster has no issuer that AWS trusts (Authentication cluster, spec.serviceAccountIssuer): give \
         --oidc-issuer-url or --instance-role-arn",
    )?;
    Ok(issuer.to_owned())
}

// === impl CreateCliRoleArgs ===

impl CreateCliRoleArgs {
    /// Creates the role and prints its ARN, or reports what would be created.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        check_name(&self.name)?;
        let session = self.account.session(&self.name, "cli-create-cli-role")?;
        runtime()?.block_on(async {
            let executor = session.executor();
            if self.account.dry_run {
                return executor.report_cli_role(&self.name).await;
            }
            let arn = Box::pin(executor.create_cli_role(&self.name)).await?;
            print(&format!("{arn}\n"))
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    #[derive(Debug, Parser)]
    struct Roles {
        #[command(flatten)]
        args: CreateOperatorRolesArgs,
    }

    #[derive(Debug, Parser)]
    struct CliRole {
        #[command(flatten)]
        args: CreateCliRoleArgs,
    }

    /// Mistakes are found without a request.
    #[test]
    fn wrong_flags_are_refused_before_anything_is_made() {
        let usual = [
            "roles",
            "--oidc-storage-provider-s3-bucket-name=documents",
            "--region=eu-west-1",
            "--aws-creds=/no/such/file",
        ];
        let issuer = "--oidc-issuer-url=https://issuer";
        for (flags, expected) in [
            (&[issuer][..], "/no/such/file"),
            (&[issuer, "--name-prefix=a/b"], "--name-prefix"),
            (&["--name-prefix=a/b"], "--name-prefix"),
            (&["--oidc-issuer-url=issuer"], "--oidc-issuer-url"),
            (&["--instance-role-arn=worker"], "--instance-role-arn"),
            (&[issuer, "--additional-tags=a"], "--additional-tags"),
            (&[issuer, "--region=a.b/"], "--region"),
        ] {
            // The last one of a flag that is given twice would be an error of the parser.
            let usual = usual.iter().filter(|it| {
                let (flag, _) = it.split_once('=').unwrap_or_default();
                flag.is_empty() || !flags.iter().any(|other| other.starts_with(flag))
            });
            let args = Roles::try_parse_from(usual.chain(flags)).unwrap().args;
            let error = format!("{:#}", args.run().unwrap_err());
            assert!(error.contains(expected), "{flags:?}: {error}");
        }
        let both = [issuer, "--instance-role-arn=arn:aws:iam::1:role/a"];
        Roles::try_parse_from(usual.iter().chain(&both)).unwrap_err();
        Roles::try_parse_from(["roles", issuer]).unwrap_err();
        for (flags, expected) in [
            (&["--name=a/b"][..], "--name"),
            (&["-t=a"], "--additional-tags"),
            (&["--aws-creds=/no/such/file"], "/no/such/file"),
        ] {
            let words = [&["role"][..], flags].concat();
            let args = CliRole::try_parse_from(words).unwrap().args;
            let error = format!("{:#}", args.run().unwrap_err());
            assert!(error.contains(expected), "{flags:?}: {error}");
        }
    }

    #[tokio::test]
    async fn the_issuer_is_that_of_the_management_cluster() {
        let path = "/apis/config.openshift.io/v1/authentications/cluster";
        let with = |issuer: &str| {
            Answer::ok(&json!({
                "apiVersion": "config.openshift.io/v1",
                "kind": "Authentication",
                "metadata": { "name": "cluster" },
                "spec": { "serviceAccountIssuer": issuer },
            }))
        };
        for (answer, expected) in [
            (with("https://issuer/a"), Ok("https://issuer/a")),
            (with(""), Err("--instance-role-arn")),
            (Answer::error(404, "NotFound"), Err("--oidc-issuer-url")),
            (Answer::error(403, "Forbidden"), Err("Forbidden")),
        ] {
            let scenario = Scenario::new([Expect::get(path).answer(answer)]);
            let found = issuer_of(&Hosted::new(scenario.client())).await;
            scenario.finish();
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(error), Err(part)) => {
                    let error = format!("{error:#}");
                    assert!(error.contains(part), "{error}");
                }
                (found, expected) => panic!("{found:?} instead of {expected:?}"),
            }
        }
    }
}
