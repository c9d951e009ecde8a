//! `control-plane-operator token-minter`: keeps a token of a service account of the hosted cluster in a file.
//!
//! Components of the control plane use it towards clouds that trust the hosted cluster's issuer, or towards its API.

mod mint;

use std::path::{Path, PathBuf};
use std::time::Duration;

use support::args::{ApiServerArgs, LoggingArgs, Time};
use support::error::chain;

use crate::error::{Failure, Usage};
use crate::tool::{self, Once};
use mint::Account;

/// Between two attempts after a failure.
const PAUSE: Duration = Duration::from_secs(2);

/// The flags of `token-minter`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Whom the token is for.
    #[arg(long, value_name = "AUDIENCE")]
    pub token_audience: String,
    /// Namespace of the service account.
    #[arg(long, value_name = "NAME")]
    pub service_account_namespace: String,
    /// Name of the service account. It is made if it is missing.
    #[arg(long, value_name = "NAME")]
    pub service_account_name: String,
    /// File to write the token to.
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
    /// Write one token and end.
    #[arg(long)]
    pub oneshot: bool,
    /// For how long a token is asked for. It is renewed when four fifths of what is given are over.
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub token_lifetime: Time,
    /// What is logged.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// Mints.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.kubeconfig.is_none() && args.kubeconfig_secret_name.is_none() {
        return Err(Box::new(Usage {
            message: "give --kubeconfig, or --kubeconfig-secret-namespace and -name".to_owned(),
        }));
    }
    tool::run(&args.logging, keep(args))
}

async fn keep(args: &Args) -> Result<(), Failure> {
    let account = Account {
        namespace: args.service_account_namespace.clone(),
        name: args.service_account_name.clone(),
        audience: args.token_audience.clone(),
        lifetime: args.token_lifetime.0,
    };
    let mut once = Once::default();
    loop {
        let pause = match renew(args, &account).await {
            Ok(lifetime) => {
                tracing::info!(account = %account, "Token written");
                once = Once::default();
                if args.oneshot {
                    return Ok(());
                }
                mint::renewal(lifetime)
            }
            Err(error) => {
                let problem = chain(error.as_ref());
                if once.is_news(&problem) {
                    tracing::warn!(account = %account, problem, "No token");
                }
                PAUSE
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Writes a new token, and says how long it is good for.
async fn renew(args: &Args, account: &Account) -> Result<Duration, Failure> {
    let client = client(args).await?;
    let token = account.mint(&client).await?;
    write(&args.token_file, &token.token)?;
    Ok(token.lifetime)
}

/// The kubeconfig is read each time: its certificate is renewed, too.
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
    Ok(support::client::connect(config)?)
}

/// Replaces the file, so that no reader sees half a token.
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
    fn command_lines_of_the_components_are_taken() {
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
    fn a_token_replaces_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        write(&file, "a").unwrap();
        write(&file, "b").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "b");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
