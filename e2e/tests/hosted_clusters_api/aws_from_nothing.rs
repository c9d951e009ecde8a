//! A cluster on AWS, from an account that has nothing but a public hosted zone, to an account that has nothing more than that.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use http::Request;
use serde_json::Value;
use testbed::cargo::{self, Program};
use testbed::cloud::{Cloud, FakeStore};
use testbed::payload::REGION;
use testbed::testbed::Testbed;
use tokio::process::Command;

use crate::hosted_clusters_api::bastion;
use crate::hosted_clusters_api::cluster::{HOSTED_CLUSTERS, NODE_POOLS};
use crate::hosted_clusters_api::command::{BINARY_VARIABLE, done};
use crate::hosted_clusters_api::fixture::{Fixture, NAMESPACE};

const NAME: &str = "cloudy";
pub(crate) const INFRA_ID: &str = "cloudy-x1";

/// The fake of AWS, and the program.
struct Scene<'a> {
    program: PathBuf,
    cloud: Cloud,
    _store: FakeStore,
    work_dir: &'a Path,
}

/// Creates network, roles and cluster, and destroys them.
pub(crate) async fn runs(testbed: &Testbed, fixture: &Fixture, kubeconfig: &Path) -> Result<()> {
    let store = FakeStore::start(testbed.work_dir(), &testbed.progress).await?;
    let program = Program::dev("cli", "hcp");
    let scene = Scene {
        program: program.find(BINARY_VARIABLE, &testbed.progress).await?,
        cloud: Cloud::new(&store.url(), REGION)?,
        _store: store,
        work_dir: testbed.path(),
    };
    scene.cloud.create_public_zone("example.com").await?;
    let before = scene.cloud.account().await?;
    let path = HOSTED_CLUSTERS.named(NAMESPACE, NAME);
    for access in ["Public", "PublicAndPrivate", "Private"] {
        if access == "Public" {
            scene.infrastructure().await?;
        }
        scene.cluster(fixture, kubeconfig, access).await?;
        let created = testbed.admin.get(&path).await?;
        let found = &created["spec"]["platform"]["aws"]["endpointAccess"];
        ensure!(found == access, "{found} is not {access}");
        if access == "Public" {
            scene.fits(&created).await?;
            scene.has_no_consoles(testbed, kubeconfig).await?;
        }
        let mut destroy = scene.command(&["destroy", "cluster", "aws", "--name", NAME]);
        // No control plane runs that would do it.
        destroy.arg("--destroy-cloud-resources=false");
        done(&mut destroy, kubeconfig).await?;
        let left = testbed.admin.find(&path).await?;
        ensure!(left.is_none(), "the HostedCluster is still there");
        // The operator may not have seen the cluster before it was deleted.
        let mut pools = testbed.admin.list(&NODE_POOLS.within(NAMESPACE)).await?;
        pools.retain(|pool| pool["spec"]["clusterName"] == NAME);
        ensure!(pools.is_empty(), "{} NodePools are left", pools.len());
        let only = scene.cloud.has_only(&before).await;
        only.with_context(|| format!("the cluster was {access}"))?;
    }
    scene.infrastructure().await?;
    bastion::comes_and_goes(&scene.program, &scene.cloud, testbed.path()).await?;
    scene.infrastructure_is_destroyed().await?;
    let only = scene.cloud.has_only(&before).await;
    only.context("there was no cluster")
}

impl Scene<'_> {
    fn command(&self, words: &[&str]) -> Command {
        self.command_of(&self.program, words)
    }

    fn command_of(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(words)
            .env("AWS_ENDPOINT_URL", self.cloud.url())
            .env("AWS_ACCESS_KEY_ID", "a")
            .env("AWS_SECRET_ACCESS_KEY", "s");
        command
    }

    /// Creates the network and the roles, each twice: the second time, they exist.
    async fn infrastructure(&self) -> Result<()> {
        let [first, second, iam] =
            ["infra-1.json", "infra-2.json", "iam.json"].map(|name| self.work_dir.join(name));
        for output in [&first, &second] {
            let words = [
                "create",
                "infra",
                "aws",
                "--infra-id",
                INFRA_ID,
                "--name",
                NAME,
            ];
            let mut create = self.command(&words);
            create.args([
                "--base-domain",
                "example.com",
                "--zones",
                "us-east-1a,us-east-1b",
            ]);
            succeeds(create.arg("--output-file").arg(output)).await?;
        }
        let [first, second] = [json(&first)?, json(&second)?];
        ensure!(first == second, "{first} became {second}");
        let zone = |field: &str| {
            format!(
                "--{}={}",
                flag(field),
                first[field].as_str().unwrap_or_default()
            )
        };
        for _ in 0..2 {
            let mut create = self.command(&["create", "iam", "aws", "--infra-id", INFRA_ID]);
            create.args(["publicZoneID", "privateZoneID", "localZoneID"].map(zone));
            succeeds(create.arg("--output-file").arg(&iam)).await?;
        }
        Ok(())
    }

    /// Creates the cluster, with neither file: what exists is found by its tags and names, and the rest is created.
    async fn cluster(&self, fixture: &Fixture, kubeconfig: &Path, access: &str) -> Result<()> {
        let secret = self.work_dir.join("aws-pull-secret.json");
        std::fs::write(
            &secret,
            r#"{"auths": {"r.example.com": {"auth": "bm86Ym9keQ=="}}}"#,
        )?;
        let words = [
            "create",
            "cluster",
            "aws",
            "--name",
            NAME,
            "--infra-id",
            INFRA_ID,
        ];
        let mut create = self.command(&words);
        create
            .args([
                "--base-domain",
                "example.com",
                "--zones",
                "us-east-1a,us-east-1b",
            ])
            .args(["--release-image", &fixture.release])
            .args(["--endpoint-access", access])
            .arg("--pull-secret")
            .arg(&secret);
        done(&mut create, kubeconfig).await.map(drop)
    }

    /// The cluster has no instances, so there are no consoles. This command is one of `hypershift` only.
    async fn has_no_consoles(&self, testbed: &Testbed, kubeconfig: &Path) -> Result<()> {
        let program = cargo::command_line(&testbed.progress).await?;
        let mut logs = self.command_of(&program, &["console-logs", "aws", "--name", NAME]);
        logs.arg("--output-dir").arg(self.work_dir.join("consoles"));
        let said = done(&mut logs, kubeconfig).await?;
        ensure!(said.contains("has no running instances"), "{said}");
        Ok(())
    }

    /// Destroys the roles and the network, each twice: the second time, they do not exist.
    async fn infrastructure_is_destroyed(&self) -> Result<()> {
        for _ in 0..2 {
            let words = ["destroy", "iam", "aws", "--infra-id", INFRA_ID];
            succeeds(&mut self.command(&words)).await?;
            let words = ["destroy", "infra", "aws", "--infra-id", INFRA_ID];
            let mut destroy = self.command(&words);
            destroy.args(["--name", NAME, "--base-domain", "example.com"]);
            succeeds(&mut destroy).await?;
        }
        Ok(())
    }

    /// The cluster names what was created before, and the documents of its issuer are there.
    async fn fits(&self, cluster: &Value) -> Result<()> {
        let network = json(&self.work_dir.join("infra-1.json"))?;
        let roles = json(&self.work_dir.join("iam.json"))?;
        let spec = &cluster["spec"];
        let aws = &spec["platform"]["aws"];
        for (found, expected) in [
            (&spec["infraID"], &network["infraID"]),
            (&spec["dns"]["publicZoneID"], &network["publicZoneID"]),
            (&spec["dns"]["privateZoneID"], &network["privateZoneID"]),
            (&aws["cloudProviderConfig"]["vpc"], &network["vpcID"]),
            (&aws["rolesRef"], &roles["roles"]),
            (&spec["issuerURL"], &roles["issuerURL"]),
        ] {
            ensure!(found == expected, "{found} is not {expected}");
        }
        let path = format!("/{INFRA_ID}-oidc/{INFRA_ID}/.well-known/openid-configuration");
        let document = self.cloud.send("s3", Request::get(path), "").await?;
        let issuer = roles["issuerURL"].as_str().context("no issuer")?;
        ensure!(document.contains(issuer), "{document}");
        Ok(())
    }
}

/// Runs a command that needs no cluster.
async fn succeeds(command: &mut Command) -> Result<()> {
    let output = command.kill_on_drop(true).output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "hcp failed: {said}");
    Ok(())
}

/// The flag of a field: `public-zone-id` of `publicZoneID`.
fn flag(field: &str) -> String {
    let name = field.trim_end_matches("ZoneID");
    format!("{name}-zone-id")
}

fn json(path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}
