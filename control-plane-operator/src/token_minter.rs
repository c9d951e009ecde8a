//! `control-plane-operator token-minter`: writes a service account token of the hosted cluster to a file, and renews
//! it.
//!
//! Control plane components use it for clouds that trust the hosted cluster's issuer, and for its API.

pub(crate) mod mint;

use std::path::{Path, PathBuf};
use std::time::Duration;

use support::args::{ApiServerArgs, LoggingArgs, Time};
use support::error::chain;

use crate::error::{Failure, Usage};
use crate::tool::{self, LogFilter};
use mint::Account;

/// Delay before a retry.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// The flags of `token-minter`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Audience of the token.
    #[arg(long, value_name = "AUDIENCE")]
    pub token_audience: String,
    /// Namespace of the service account.
    #[arg(long, value_name = "NAME")]
    pub service_account_namespace: String,
    /// Name of the service account. It is created if it does not exist.
    #[arg(long, value_name = "NAME")]
    pub service_account_name: String,
    /// Output file.
    #[arg(long, value_name = "FILE")]
    pub token_file: PathBuf,
    /// Kubeconfig of the hosted cluster.
    #[arg(long, value_name = "FILE", conflicts_with = "kubeconfig_secret_name")]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of a Secret with the kubeconfig, on the management cluster.
    #[arg(long, value_name = "NAME", requires = "kubeconfig_secret_name")]
    pub kubeconfig_secret_namespace: Option<String>,
    /// Name of that Secret.
    #[arg(long, value_name = "NAME", requires = "kubeconfig_secret_namespace")]
    pub kubeconfig_secret_name: Option<String>,
    /// Write one token and exit.
    #[arg(long)]
    pub oneshot: bool,
    /// Requested lifetime of the token. It is renewed after 80% of the granted lifetime.
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub token_lifetime: Time,
    /// Logging flags.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.kubeconfig.is_none() && args.kubeconfig_secret_name.is_none() {
        return Err(Box::new(Usage {
            message:
                "set --kubeconfig, or --kubeconfig-secret-namespace and --kubeconfig-secret-name"
                    .to_owned(),
        }));
    }
    tool::run(&args.logging, run_minter(args))
}

async fn run_minter(args: &Args) -> Result<(), Failure> {
    let account = Account {
        namespace: args.service_account_namespace.clone(),
        name: args.service_account_name.clone(),
        audience: args.token_audience.clone(),
        lifetime: args.token_lifetime.0,
    };
    let mut filter = LogFilter::default();
    loop {
        let pause = match renew(args, &account).await {
            Ok(lifetime) => {
                tracing::info!(account = %account, "Wrote token");
                filter = LogFilter::default();
                if args.oneshot {
                    return Ok(());
                }
                mint::renewal(lifetime)
            }
            Err(error) => {
                let problem = chain(error.as_ref());
                if filter.is_new(&problem) {
                    tracing::warn!(account = %account, problem, "Failed to renew token");
                }
                RETRY_INTERVAL
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Writes a new token, and returns its lifetime.
async fn renew(args: &Args, account: &Account) -> Result<Duration, Failure> {
    let client = client(args).await?;
    let token = account.mint(&client).await?;
    write(&args.token_file, &token.token)?;
    Ok(token.lifetime)
}

/// The kubeconfig is read each time, because its certificate is renewed.
async fn client(args: &Args) -> Result<kube::Client, Failure> {
    let namespace = args.kubeconfig_secret_namespace.as_deref();
    let name = args.kubeconfig_secret_name.as_deref();
    let config = if let (Some(namespace), Some(name)) = (namespace, name) {
        mint::config_of_secret(namespace, name).await?
    } else {
        let args = ApiServerArgs {
            kubeconfig: args.kubeconfig.clone(),
            context: None,
        };
        support::client::config(&args).await?
    };
    Ok(support::client::connect(&config)?)
}

/// Replaces the file atomically, so that no reader sees a partial token.
fn write(file: &Path, token: &str) -> std::io::Result<()> {
    let fresh = file.with_extension("new");
    std::fs::write(&fresh, token)?;
    std::fs::rename(&fresh, file)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn component_command_lines_are_accepted() {
        let args = [
            "control-plane-operator",
            "token-minter",
            "--service-account-namespace",
            "openshift-network-operator",
            "--service-account-name",
            "cluster-network-operator",
            "--token-file",
            "/var/client-token/token",
            "--kubeconfig",
            "/etc/kubernetes/kubeconfig",
            "--oneshot",
            "--token-audience",
            "https://issuer.example.com/a",
        ];
        let Command::TokenMinter(args) = Cli::try_parse_from(args).unwrap().command else {
            panic!("another command");
        };
        assert!(args.oneshot);
    }

    #[test]
    fn token_files_are_replaced_atomically() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        write(&file, "a").unwrap();
        write(&file, "b").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "b");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
