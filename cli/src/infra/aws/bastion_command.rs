//! `create bastion aws`, `destroy bastion aws`.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use clap::Args;
use http::{Request, StatusCode};
use hyper::body::Bytes;
use support::outbound::Http;

use super::bastion::{BastionRequest, PublicKey, cidr};
use super::credentials::CredentialArgs;
use super::executor::Executor;
use super::scope::{Scope, place};
use crate::Usage;
use crate::create::text;
use crate::hosted::{Hosted, refused};
use crate::install::display::{Display, print};
use crate::install::{TargetArgs, runtime};

/// Responds with the address from which a request comes. It belongs to AWS.
const ADDRESS_SERVICE: &str = "https://checkip.amazonaws.com/";
/// The field of a Secret with the public key of a cluster.
const KEY_FIELD: &str = "id_rsa.pub";
/// The user of Amazon Linux.
const USER: &str = "ec2-user";

/// Flags that say whose bastion it is.
#[derive(Debug, Args)]
pub(crate) struct OwnerArgs {
    /// Name of the hosted cluster
    #[arg(
        long,
        value_name = "NAME",
        required_unless_present = "infra_id",
        conflicts_with_all = ["infra_id", "region"]
    )]
    name: Option<String>,

    /// Namespace of the hosted cluster
    #[arg(
        long,
        short,
        value_name = "NAME",
        default_value = "clusters",
        conflicts_with = "infra_id"
    )]
    namespace: String,

    /// Name of the infrastructure, if there is no hosted cluster; needs --region
    #[arg(long, value_name = "ID", requires = "region")]
    infra_id: Option<String>,

    /// Region of the infrastructure [default: that of the hosted cluster]
    #[arg(long, value_name = "NAME", requires = "infra_id")]
    region: Option<String>,

    #[command(flatten)]
    credentials: CredentialArgs,

    /// Report what there is and what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    target: TargetArgs,
}

/// Flags of `create bastion aws`.
#[derive(Debug, Args)]
pub(crate) struct CreateBastionArgs {
    #[command(flatten)]
    of: OwnerArgs,

    /// File with the public SSH key (RSA or Ed25519) for logging in [default: the key of the hosted cluster]
    #[arg(long, value_name = "FILE", required_unless_present = "name")]
    ssh_key_file: Option<PathBuf>,

    /// Address ranges (IPv4) from which SSH is let in, separated by commas; 0.0.0.0/0 for everywhere. Those of earlier runs
    /// stay [default: the address of this machine]
    #[arg(long, value_name = "CIDRS", value_delimiter = ',', value_parser = cidr)]
    ssh_from: Vec<String>,

    /// Wait until the instance runs and has a public address
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set,
        num_args = 0..=1, default_missing_value = "true")]
    wait: bool,

    /// Tags of all resources, separated by commas
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    additional_tags: Vec<String>,
}

/// Flags of `destroy bastion aws`.
#[derive(Debug, Args)]
pub(crate) struct DestroyBastionArgs {
    #[command(flatten)]
    of: OwnerArgs,
}

/// Whose bastion it is.
struct Owner {
    infra_id: String,
    /// Name of the cluster, if it is known.
    name: String,
    region: String,
    cluster: Option<(Hosted, Box<HostedCluster>)>,
}

// === impl OwnerArgs ===

impl OwnerArgs {
    async fn owner(&self) -> anyhow::Result<Owner> {
        let Some(name) = &self.name else {
            let both = self.infra_id.clone().zip(self.region.clone());
            let (infra_id, region) =
                both.ok_or_else(|| Usage::new(&"give --name, or --infra-id with --region"))?;
            return Ok(Owner {
                name: infra_id.clone(),
                infra_id,
                region,
                cluster: None,
            });
        };
        let hosted = Hosted::connect(&self.target.access()).await?;
        let cluster = hosted.cluster(&self.namespace, name).await?;
        let (region, infra_id) = place(&cluster)?;
        Ok(Owner {
            infra_id: infra_id.to_owned(),
            name: name.clone(),
            region: region.to_owned(),
            cluster: Some((hosted, Box::new(cluster))),
        })
    }
}

// === impl Owner ===

impl Owner {
    fn scope(&self, tags: BTreeMap<String, String>) -> Result<Scope, Usage> {
        Scope::new(&self.infra_id, &self.name, &self.region, tags)
    }

    /// The public key of the hosted cluster.
    async fn key(&self, namespace: &str) -> anyhow::Result<PublicKey> {
        let Some((hosted, cluster)) = &self.cluster else {
            return Err(Usage::new(&"--infra-id needs --ssh-key-file").into());
        };
        let reference = cluster.spec.ssh_key.as_ref();
        let secret = reference.map_or("", |it| it.name.as_str());
        if secret.is_empty() {
            bail!("the hosted cluster has no spec.sshKey: give a public key with --ssh-key-file");
        }
        let what = format!("Secret {namespace}/{secret}");
        let found = hosted.secrets(namespace).get_opt(secret).await;
        let found =
            found.map_err(|error| refused(&error).context(format!("failed to get {what}")))?;
        let found = found.with_context(|| {
            format!(
                "there is no {what}, which spec.sshKey names: give a public key with --ssh-key-file"
            )
        })?;
        let field = found.data.unwrap_or_default().remove(KEY_FIELD);
        let bytes = field.map(|field| field.0).unwrap_or_default();
        let key = PublicKey::parse(&String::from_utf8_lossy(&bytes));
        key.with_context(|| {
            format!("{what} has no public key under {KEY_FIELD} that EC2 takes (RSA or Ed25519): give one with --ssh-key-file")
        })
    }
}

// === impl CreateBastionArgs ===

impl CreateBastionArgs {
    /// Creates it and prints its public address, or reports what would be created.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let tags = text::pairs("--additional-tags", &self.additional_tags)?;
        let key = self.ssh_key_file.as_deref().map(key_of_file).transpose()?;
        runtime()?.block_on(Box::pin(self.create(tags, key)))
    }

    async fn create(
        &self,
        tags: BTreeMap<String, String>,
        key: Option<PublicKey>,
    ) -> anyhow::Result<()> {
        let owner = self.of.owner().await?;
        let scope = owner.scope(tags)?;
        let key = match key {
            Some(key) => key,
            None => owner.key(&self.of.namespace).await?,
        };
        let credentials = &self.of.credentials;
        let aws = credentials.connect(&scope.region, "cli-create-bastion")?;
        let display = Display::new(self.of.quiet);
        let executor = Executor {
            calls: &aws,
            scope: &scope,
            display: &display,
        };
        if self.of.dry_run {
            return Box::pin(executor.report_bastion()).await;
        }
        let from = if self.ssh_from.is_empty() {
            vec![caller().await?]
        } else {
            self.ssh_from.clone()
        };
        let request = BastionRequest {
            key,
            from,
            wait: self.wait,
        };
        let made = Box::pin(executor.create_bastion(&request)).await?;
        if made.address.is_empty() {
            display.say(&format!(
                "instance {} has no public address yet: run the command again to print it",
                made.id
            ));
            return Ok(());
        }
        display.say(&format!(
            "reach nodes with: ssh -J {USER}@{} core@NODE_ADDRESS. The SSH server may need a minute",
            made.address
        ));
        print(&format!("{}\n", made.address))
    }
}

// === impl DestroyBastionArgs ===

impl DestroyBastionArgs {
    /// Destroys it, or reports what would be destroyed.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        runtime()?.block_on(Box::pin(self.destroy()))
    }

    async fn destroy(&self) -> anyhow::Result<()> {
        let scope = self.of.owner().await?.scope(BTreeMap::new())?;
        let credentials = &self.of.credentials;
        let aws = credentials.connect(&scope.region, "cli-destroy-bastion")?;
        let display = Display::new(self.of.quiet);
        let executor = Executor {
            calls: &aws,
            scope: &scope,
            display: &display,
        };
        if self.of.dry_run {
            return Box::pin(executor.report_bastion_destruction()).await;
        }
        Box::pin(executor.destroy_bastion()).await
    }
}

/// The public key of a file. The file is not quoted: a user may have named the private key.
fn key_of_file(path: &Path) -> anyhow::Result<PublicKey> {
    let read = text::file("--ssh-key-file", path)?;
    let key = PublicKey::parse(&read).ok_or_else(|| {
        Usage::new(&format!(
            "--ssh-key-file {}: this is no public SSH key that EC2 takes (a line that begins with ssh-rsa or ssh-ed25519)",
            path.display()
        ))
    })?;
    Ok(key)
}

/// The address of this machine, as AWS sees it.
async fn caller() -> anyhow::Result<String> {
    let failed = || {
        format!(
            "failed to get the address of this machine from {ADDRESS_SERVICE}: give it with --ssh-from"
        )
    };
    let build = || Request::get(ADDRESS_SERVICE).body(Bytes::new());
    let response = Http::new().send(build).await.with_context(failed)?;
    if response.status() != StatusCode::OK {
        bail!("{}: the server responds {}", failed(), response.status());
    }
    let text = String::from_utf8_lossy(response.body());
    let address = text.trim().parse::<Ipv4Addr>().with_context(failed)?;
    Ok(format!("{address}/32"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Create {
        #[command(flatten)]
        args: CreateBastionArgs,
    }

    #[derive(Debug, Parser)]
    struct Destroy {
        #[command(flatten)]
        args: DestroyBastionArgs,
    }

    fn words<'a>(flags: &[&'a str]) -> Vec<&'a str> {
        [&["bastion"][..], flags].concat()
    }

    #[test]
    fn a_bastion_belongs_to_a_cluster_or_to_an_infrastructure() {
        let infra = ["--infra-id=a-x1", "--region=us-east-1"];
        for (flags, create, destroy) in [
            (&["--name=a"][..], true, true),
            (&["--name=a", "--namespace=b"][..], true, true),
            (&["--name=a", "--infra-id=a-x1"][..], false, false),
            (&["--name=a", "--region=us-east-1"][..], false, false),
            (&["--namespace=a"][..], false, false),
            (&["--infra-id=a-x1"][..], false, false),
            (&["--region=us-east-1"][..], false, false),
            (&[][..], false, false),
            // Only a cluster has a key.
            (&infra[..], false, true),
            (&[&infra[..], &["--namespace=b"]].concat()[..], false, false),
        ] {
            let created = Create::try_parse_from(words(flags));
            assert_eq!(created.is_ok(), create, "create {flags:?}: {created:?}");
            let destroyed = Destroy::try_parse_from(words(flags));
            assert_eq!(destroyed.is_ok(), destroy, "destroy {flags:?}");
        }
        let with_key = [&infra[..], &["--ssh-key-file=key.pub"]].concat();
        let args = Create::try_parse_from(words(&with_key)).unwrap().args;
        assert!(args.wait && args.ssh_from.is_empty());
        Create::try_parse_from(words(&["--name=a", "--colour=red"])).unwrap_err();
    }

    #[test]
    fn flags_are_read() {
        let flags = [
            "--name=a",
            "--wait=false",
            "--ssh-from=192.0.2.1,10.1.2.3/8",
        ];
        let args = Create::try_parse_from(words(&flags)).unwrap().args;
        assert!(!args.wait);
        assert_eq!(args.ssh_from, ["192.0.2.1/32", "10.0.0.0/8"]);
        let wrong = Create::try_parse_from(words(&["--name=a", "--ssh-from=here"]));
        let error = wrong.unwrap_err().to_string();
        assert!(error.contains("not a valid CIDR"), "{error}");
    }

    #[test]
    fn a_private_key_is_refused_and_not_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        std::fs::write(&path, "-----BEGIN PRIVATE KEY-----\ns3cret\n").unwrap();
        let error = format!("{:#}", key_of_file(&path).unwrap_err());
        assert!(error.contains("--ssh-key-file"), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
        std::fs::write(&path, "ssh-ed25519 AAAA me@host\n").unwrap();
        let key = key_of_file(&path).unwrap();
        assert!(key.is("ssh-ed25519 AAAA"));
    }

    /// Mistakes are found without a request.
    #[test]
    fn wrong_flags_are_refused_before_anything_is_made() {
        let infra = |id: &str| {
            let id = format!("--infra-id={id}");
            let flags = [
                id.as_str(),
                "--region=us-east-1",
                "--aws-creds=/no/such/file",
            ];
            Destroy::try_parse_from(words(&flags)).unwrap().args
        };
        for (id, expected) in [("A", "--infra-id"), ("a-x1", "/no/such/file")] {
            let error = format!("{:#}", infra(id).run().unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
        let flags = ["--name=a", "--additional-tags=b"];
        let args = Create::try_parse_from(words(&flags)).unwrap().args;
        let error = args.run().unwrap_err().to_string();
        assert!(error.contains("--additional-tags"), "{error}");
    }
}
