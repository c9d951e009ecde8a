//! A snapshot of etcd goes to S3 and comes back as an etcd with the same keys.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use http::{Request, StatusCode};
use testbed::binaries::{Binaries, Binary};
use testbed::cargo::Program;
use testbed::cloud::FakeStore;
use testbed::progress::Progress;
use testbed::raw::RawClient;
use testbed::work_dir::WorkDir;
use tokio::process::Command;

use super::etcd::{Etcd, Files, cluster, said};

const BUCKET: &str = "backups";
const KEY: &str = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555";
/// Larger than one part of an upload.
const LARGE: usize = 40 << 20;

/// The store, and the program.
struct Scene {
    work_dir: Arc<WorkDir>,
    program: PathBuf,
    store: FakeStore,
    s3: RawClient,
    files: Files,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_is_backed_up_to_s3_and_restored() -> Result<()> {
    let progress = Progress::detect();
    let needed = [Binary::Etcd, Binary::Etcdctl, Binary::Etcdutl];
    let binaries = Binaries::ensure(&needed, &progress).await?;
    let work_dir = Arc::new(WorkDir::open("etcd-backup")?);
    let program = Program::dev("control-plane-operator", "control-plane-operator");
    let store = FakeStore::start(&work_dir, &progress).await?;
    let scene = Scene {
        program: program.build(&progress).await?,
        // The store hides objects from requests without a header Authorization, and accepts any.
        s3: RawClient::new(&store.url(), None)?.with_token("test")?,
        files: Files::create(&work_dir.join("certificates"))?,
        work_dir,
        store,
    };
    let created = Request::put(format!("/{BUCKET}")).body(Vec::new())?;
    ensure!(scene.s3.send(created).await?.status == StatusCode::OK);
    let mut etcd = Etcd::new(&scene.work_dir, &binaries, &scene.files, 1)?;
    etcd.start().await?;
    etcd.ctl(0, &["put", "kept", "before"]).await?;
    let object = scene.back_up(&etcd).await?;
    restore(&scene, &binaries, &object).await?;
    scene.upload(&object).await?;
    scene.refused(&etcd).await
}

impl Scene {
    /// A command with these variables, and no others of AWS.
    async fn run(&self, args: &[&str], variables: &[(&str, &str)]) -> Result<Output> {
        let endpoint = self.store.url();
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .env_clear()
            .env("AWS_ENDPOINT_URL", endpoint);
        let output = command.envs(variables.iter().copied()).output().await;
        output.context("cannot run control-plane-operator")
    }

    fn backup_flags(&self, etcd: &Etcd, bucket: &str) -> Vec<String> {
        let flag = |name: &str, value: &dyn std::fmt::Display| format!("--{name}={value}");
        vec![
            "etcd-backup".to_owned(),
            flag("backup-dir", &self.work_dir.path().display()),
            flag("etcd-endpoint", &etcd.members[0].url),
            flag("etcd-client-cert", &self.files.certificate.display()),
            flag("etcd-client-key", &self.files.key.display()),
            flag("etcd-ca-cert", &self.files.ca.display()),
            flag("s3-bucket-name", &bucket),
            flag("s3-bucket-region", &"us-east-1"),
            flag("s3-key-prefix", &"clusters/dev"),
            flag("s3-object-tags", &"cluster=dev,keep=30 days"),
        ]
    }

    /// Takes a backup, and returns the object.
    async fn back_up(&self, etcd: &Etcd) -> Result<Vec<u8>> {
        let flags = self.backup_flags(etcd, BUCKET);
        let flags: Vec<_> = flags.iter().map(String::as_str).collect();
        let keys = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "s")];
        let output = self.run(&flags, &keys).await?;
        ensure!(output.status.success(), "{}", said(&output));
        let url = String::from_utf8(output.stdout)?;
        let key = url
            .trim()
            .strip_prefix("s3://backups/")
            .context(url.clone())?;
        ensure!(
            key.starts_with("clusters/dev/") && Path::new(key).extension() == Some("db".as_ref()),
            "{key}"
        );
        let response = self.s3.get(&format!("/{BUCKET}/{key}?tagging")).await?;
        let status = response.status;
        let tags = String::from_utf8(response.bytes().await?)?;
        ensure!(
            tags.contains("<Value>30 days</Value>"),
            "tags of {key}: {status}: {tags}"
        );
        self.object(key).await
    }

    async fn object(&self, key: &str) -> Result<Vec<u8>> {
        let response = self.s3.get(&format!("/{BUCKET}/{key}")).await?;
        ensure!(
            response.status == StatusCode::OK,
            "{key}: {}",
            response.status
        );
        response.bytes().await
    }

    /// Uploads with a role, in parts, encrypted.
    async fn upload(&self, snapshot: &[u8]) -> Result<()> {
        let token = self.work_dir.path().join("token");
        std::fs::write(&token, "a.b.c")?;
        let role = [
            ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/backup"),
            (
                "AWS_WEB_IDENTITY_TOKEN_FILE",
                token.to_str().context("no UTF-8")?,
            ),
        ];
        let mut large = snapshot.to_vec();
        large.resize(LARGE, 7);
        for (name, content) in [("small.db", snapshot), ("large.db", &large)] {
            let file = self.work_dir.path().join(name);
            std::fs::write(&file, content)?;
            let path = format!("--snapshot-path={}", file.display());
            let key = format!("--aws-kms-key-arn={KEY}");
            let flags = [
                "etcd-upload",
                "--storage-type=S3",
                "--aws-bucket=backups",
                "--aws-region=us-east-1",
                "--key-prefix=jobs/",
                &key,
                &path,
            ];
            let output = self.run(&flags, &role).await?;
            ensure!(output.status.success(), "{name}: {}", said(&output));
            let url = String::from_utf8(output.stdout)?;
            let key = url
                .trim()
                .strip_prefix("s3://backups/")
                .context(url.clone())?;
            ensure!(
                self.object(key).await? == content,
                "{name}: another content"
            );
            let head = Request::head(format!("/{BUCKET}/{key}")).body(Vec::new())?;
            let head = self.s3.send(head).await?;
            let encryption = |name: &str| head.headers.get(name).and_then(|it| it.to_str().ok());
            ensure!(
                encryption("x-amz-server-side-encryption") == Some("aws:kms"),
                "{name}"
            );
            let used = encryption("x-amz-server-side-encryption-aws-kms-key-id");
            ensure!(used == Some(KEY), "{name}: {used:?}");
        }
        Ok(())
    }

    /// What is wrong is named, and nothing is left.
    async fn refused(&self, etcd: &Etcd) -> Result<()> {
        let keys = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "s")];
        let wrong_ca = Files::create(&self.work_dir.join("other"))?.ca;
        let other = self.backup_flags(etcd, "absent");
        let mut untrusted = self.backup_flags(etcd, BUCKET);
        untrusted[5] = format!("--etcd-ca-cert={}", wrong_ca.display());
        let all = self.backup_flags(etcd, BUCKET);
        let half: Vec<_> = all[..6].to_vec();
        for (name, flags, variables, code, expected) in [
            ("no bucket", &other, &keys[..], 1, "NoSuchBucket"),
            (
                "no credentials",
                &all,
                &[][..],
                1,
                "failed to find credentials",
            ),
            (
                "another authority",
                &untrusted,
                &keys[..],
                1,
                "failed to take a snapshot of etcd",
            ),
            ("missing flags", &half, &keys[..], 64, "--s3-bucket-name"),
        ] {
            let count = self.objects().await?;
            let flags: Vec<_> = flags.iter().map(String::as_str).collect();
            let output = self.run(&flags, variables).await?;
            let said = said(&output);
            ensure!(
                output.status.code() == Some(code),
                "{name}: {:?} {said}",
                output.status
            );
            ensure!(said.contains(expected), "{name}: {said}");
            ensure!(
                self.objects().await? == count,
                "{name}: it has written an object"
            );
        }
        Ok(())
    }

    async fn objects(&self) -> Result<usize> {
        let list = self
            .s3
            .get(&format!("/{BUCKET}?list-type=2"))
            .await?
            .bytes()
            .await?;
        Ok(String::from_utf8(list)?.matches("<Key>").count())
    }
}

/// Starts an etcd with the snapshot; etcdutl verifies its checksum.
async fn restore(scene: &Scene, binaries: &Binaries, snapshot: &[u8]) -> Result<()> {
    let mut etcd = Etcd::new(&scene.work_dir, binaries, &scene.files, 0)?;
    let file = scene.work_dir.path().join("downloaded.db");
    std::fs::write(&file, snapshot)?;
    let peer = format!("http://127.0.0.1:{}", testbed::ports::allocate()?);
    let peers = cluster(&[("restored".to_owned(), peer.clone())]);
    let member = etcd.member("restored", &peer, &peers, "new")?;
    let port = member.url.rsplit(':').next().unwrap_or_default();
    let data = scene.work_dir.join(format!("data-restored-{port}"));
    let run = |file: &Path| {
        let mut command = Command::new(binaries.path(Binary::Etcdutl)?);
        command.args(["snapshot", "restore"]).arg(file);
        command.args(["--name", "restored", "--initial-advertise-peer-urls", &peer]);
        command
            .args(["--initial-cluster", &peers, "--data-dir"])
            .arg(&data);
        Ok::<_, anyhow::Error>(command)
    };
    let output = run(&file)?.output().await?;
    ensure!(output.status.success(), "{}", said(&output));
    etcd.members.push(member);
    etcd.start().await?;
    let value = etcd.ctl(0, &["get", "kept", "--print-value-only"]).await?;
    ensure!(value.trim() == "before", "{value}");
    Ok(())
}
