//! A failed member of etcd is repaired. The test is the `StatefulSet`: it starts a new member when pod and volume are gone.

use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::binaries::{Binaries, Binary};
use testbed::cargo::Program;
use testbed::client::{ApiClient, Patch};
use testbed::progress::Progress;
use testbed::testbed::Testbed;
use testbed::wait;
use tokio::process::Command;

use super::etcd::{Etcd, Files, cluster, said};

const NAMESPACE: &str = "clusters-dev";
const PODS: &str = "/api/v1/namespaces/clusters-dev/pods";
const CLAIMS: &str = "/api/v1/namespaces/clusters-dev/persistentvolumeclaims";
const SETS: &str = "/apis/apps/v1/namespaces/clusters-dev/statefulsets";
const WITHIN: Duration = Duration::from_mins(1);

struct Scene {
    program: PathBuf,
    kubeconfig: PathBuf,
    admin: ApiClient,
    etcd: Etcd,
    owner: Value,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_etcd_member_is_repaired() -> Result<()> {
    let testbed = Testbed::start("recover-etcd", Progress::detect()).await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &Testbed) -> Result<()> {
    let progress = Progress::detect();
    let binaries = Binaries::ensure(&[Binary::Etcd, Binary::Etcdctl], &progress).await?;
    let files = Files::create(&testbed.path().join("certificates"))?;
    let program = Program::dev("hypershift-operator", "hypershift-operator");
    let kubeconfig = testbed.kubeconfig_of("recover-etcd", Some("system:masters"))?;
    let admin = ApiClient::from_kubeconfig(&kubeconfig).await?;
    let namespace = json!({ "metadata": { "name": NAMESPACE } });
    admin.create("/api/v1/namespaces", &namespace).await?;
    // No controller runs that would create it, and pods need it.
    let account = json!({ "metadata": { "name": "default" } });
    let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
    admin.create(&accounts, &account).await?;
    let mut scene = Scene {
        program: program.build(&progress).await?,
        owner: stateful_set(&admin).await?,
        etcd: Etcd::new(testbed.work_dir(), &binaries, &files, 3)?,
        kubeconfig,
        admin,
    };
    for number in 0..3 {
        scene.pod(number, "running").await?;
    }
    scene.etcd.start().await?;
    scene.etcd.ctl(0, &["put", "kept", "before"]).await?;
    scene.expect("status", 0, "healthy").await?;
    scene.rejects_wrong_files().await?;

    scene.etcd.members[1].service.kill();
    scene.fails("etcd-1").await?;
    scene.expect("status", 0, "failing pod: etcd-1").await?;
    scene.refuses_a_rollout().await?;
    scene.repairs().await?;
    scene.expect("status", 0, "healthy").await?;

    let id = scene.member_id("etcd-2").await?;
    scene.member(&["remove", &id]).await?;
    scene.etcd.members[2].service.kill();
    scene.expect("status", 0, "missing member: etcd-2").await?;
    scene.adds_a_missing_member().await?;
    scene.expect("status", 0, "healthy").await?;

    scene.etcd.members[1].service.kill();
    scene.etcd.members[2].service.kill();
    // One of three is left, so that no list can be read with a quorum.
    let output = scene.run("run").await?;
    ensure!(output.status.code() == Some(1), "{}", said(&output));
    scene.keeps_everything().await
}

/// Creates the `StatefulSet` with its status, and returns a reference to it.
async fn stateful_set(admin: &ApiClient) -> Result<Value> {
    let pod = json!({ "containers": [{ "name": "etcd", "image": "etcd" }] });
    let set = json!({
        "metadata": { "name": "etcd" },
        "spec": {
            "serviceName": "etcd-discovery", "replicas": 0,
            "selector": { "matchLabels": { "app": "etcd" } },
            "template": { "metadata": { "labels": { "app": "etcd" } }, "spec": pod },
        },
    });
    let set = admin.create(SETS, &set).await?;
    revisions(admin, "a", "a").await?;
    Ok(json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "etcd", "controller": true,
        "uid": set["metadata"]["uid"],
    }))
}

async fn revisions(admin: &ApiClient, current: &str, update: &str) -> Result<()> {
    let status = json!({ "replicas": 0, "currentRevision": current, "updateRevision": update });
    let path = format!("{SETS}/etcd/status");
    admin
        .patch(&path, Patch::Merge, &json!({ "status": status }))
        .await?;
    Ok(())
}

impl Scene {
    async fn run(&self, command: &str) -> Result<Output> {
        self.run_with(command, &self.etcd.files).await
    }

    async fn run_with(&self, command: &str, files: &Files) -> Result<Output> {
        let output = Command::new(&self.program)
            .args(["recover-etcd", command, "--namespace", NAMESPACE])
            .arg(format!("--endpoint={}", self.etcd.members[0].url))
            .arg(format!("--etcd-ca-cert={}", files.ca.display()))
            .arg(format!(
                "--etcd-client-cert={}",
                files.certificate.display()
            ))
            .arg(format!("--etcd-client-key={}", files.key.display()))
            .env("KUBECONFIG", &self.kubeconfig)
            .kill_on_drop(true)
            .output()
            .await;
        output.context("cannot run hypershift-operator")
    }

    async fn expect(&self, command: &str, code: i32, text: &str) -> Result<()> {
        wait::until(text, WITHIN, async || {
            let output = self.run(command).await?;
            ensure!(output.status.code() == Some(code), "{}", said(&output));
            let found = String::from_utf8(output.stdout)?;
            ensure!(found.trim() == text, "{found}");
            Ok(())
        })
        .await
    }

    /// Creates the pod of a member and its volume.
    async fn pod(&self, number: usize, label: &str) -> Result<()> {
        let name = format!("etcd-{number}");
        let labels = json!({ "app": "etcd", "state": label });
        let owners = json!([self.owner]);
        let pod = json!({
            "metadata": { "name": name, "labels": labels, "ownerReferences": owners },
            "spec": {
                "containers": [{ "name": "etcd", "image": "etcd" }], "terminationGracePeriodSeconds": 0,
            },
        });
        self.admin.create(PODS, &pod).await?;
        let claim = json!({
            "metadata": { "name": format!("data-{name}"), "labels": { "app": "etcd" } },
            "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
            },
        });
        self.admin.create(CLAIMS, &claim).await?;
        Ok(())
    }

    /// Reports that the container of a pod fails.
    async fn fails(&self, name: &str) -> Result<()> {
        let waiting = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
        let status = json!({
            "name": "etcd", "image": "etcd", "imageID": "", "ready": false, "restartCount": 3, "state": waiting,
        });
        let status = json!({ "status": { "containerStatuses": [status] } });
        let path = format!("{PODS}/{name}/status");
        self.admin.patch(&path, Patch::Merge, &status).await?;
        Ok(())
    }

    async fn member_id(&self, name: &str) -> Result<String> {
        let list = self.etcd.ctl(0, &["member", "list"]).await?;
        let line = list
            .lines()
            .find(|line| line.contains(&format!(" {name},")));
        let id = line
            .and_then(|line| line.split(',').next())
            .context(list.clone())?;
        Ok(id.to_owned())
    }

    /// Changes the members. etcd refuses that until all of them have been connected for some seconds.
    async fn member(&self, args: &[&str]) -> Result<()> {
        let args = [&["member"], args].concat();
        wait::until("etcd to accept the change", WITHIN, async || {
            self.etcd.ctl(0, &args).await
        })
        .await
        .map(drop)
    }

    /// With the authority of another etcd, or its client certificate, nothing is read and nothing is deleted.
    async fn rejects_wrong_files(&self) -> Result<()> {
        let own = &self.etcd.files;
        let other = Files::create(&self.kubeconfig.with_file_name("other"))?;
        let authority = Files {
            ca: other.ca.clone(),
            ..own.clone()
        };
        let client = Files {
            ca: own.ca.clone(),
            ..other.clone()
        };
        let absent = Files {
            ca: "/does/not/exist.crt".into(),
            ..own.clone()
        };
        for (name, files, text) in [
            ("another authority", authority, "certificate"),
            (
                "another client",
                client,
                "failed to list the members of etcd",
            ),
            ("no authority", absent, "failed to read /does/not/exist.crt"),
        ] {
            let output = self.run_with("run", &files).await?;
            let said = said(&output);
            ensure!(output.status.code() == Some(1), "{name}: {said}");
            ensure!(said.contains(text), "{name}: {said}");
            self.keeps_everything().await?;
        }
        Ok(())
    }

    /// All pods and claims exist, and none is being deleted.
    async fn keeps_everything(&self) -> Result<()> {
        for number in 0..3 {
            for path in [
                format!("{PODS}/etcd-{number}"),
                format!("{CLAIMS}/data-etcd-{number}"),
            ] {
                let found = self.admin.get(&path).await?;
                let deleted = &found["metadata"]["deletionTimestamp"];
                ensure!(deleted.is_null(), "{path} is being deleted");
            }
        }
        Ok(())
    }

    /// During a rollout of the `StatefulSet` nothing is deleted.
    async fn refuses_a_rollout(&self) -> Result<()> {
        revisions(&self.admin, "a", "b").await?;
        let output = self.run("run").await?;
        let text = said(&output);
        ensure!(output.status.code() == Some(1), "{text}");
        ensure!(
            text.contains("is being rolled out from a to b: wait"),
            "{text}"
        );
        self.keeps_everything().await?;
        revisions(&self.admin, "a", "a").await
    }

    /// Repairs the failed member.
    async fn repairs(&mut self) -> Result<()> {
        let id = self.member_id("etcd-1").await?;
        let peer = self.etcd.members[1].peer.clone();
        let started = async |scene: &Self| {
            scene.member(&["remove", &id]).await?;
            let url = format!("--peer-urls={peer}");
            scene.member(&["add", "etcd-1", &url]).await
        };
        self.replaces(1, started).await
    }

    /// The command itself adds a member that is missing, with the name that it has in the cluster's DNS.
    async fn adds_a_missing_member(&mut self) -> Result<()> {
        let peer = self.etcd.members[2].peer.clone();
        let started = async |scene: &Self| {
            let list = scene.etcd.ctl(0, &["member", "list"]).await?;
            let added = "https://etcd-2.etcd-discovery.clusters-dev.svc:2380";
            let line = list.lines().find(|line| line.contains(added));
            let id = line.and_then(|line| line.split(',').next());
            let id = id.with_context(|| format!("{added} was not added: {list}"))?;
            // Here is no DNS.
            let url = format!("--peer-urls={peer}");
            scene.member(&["update", id, &url]).await
        };
        self.replaces(2, started).await
    }

    /// Runs the repair, and meanwhile does what the `StatefulSet` and the init container of the new pod do. What `started`
    /// does comes before the start of the new member.
    async fn replaces(
        &mut self,
        number: usize,
        prepare: impl AsyncFnOnce(&Self) -> Result<()>,
    ) -> Result<()> {
        let members = &self.etcd.members;
        let (name, peer) = (members[number].name.clone(), members[number].peer.clone());
        let peers: Vec<_> = members
            .iter()
            .map(|it| (it.name.clone(), it.peer.clone()))
            .collect();
        let mut new = self
            .etcd
            .member(&name, &peer, &cluster(&peers), "existing")?;
        let started = async {
            self.is_deleted(&name).await?;
            prepare(self).await?;
            self.pod(number, "new").await?;
            new.service.start().await
        };
        let (output, started) = tokio::join!(self.run("run"), started);
        let output = output?;
        started.with_context(|| said(&output))?;
        ensure!(output.status.success(), "{}", said(&output));
        self.etcd.members[number] = new;
        let get = ["get", "kept", "--print-value-only"];
        let value = self.etcd.ctl(number, &get).await?;
        ensure!(value.trim() == "before", "{value}");
        Ok(())
    }

    /// Waits until pod and claim of a member are deleted.
    async fn is_deleted(&self, name: &str) -> Result<()> {
        wait::until("the pod to be deleted", WITHIN, async || {
            let pod = self.admin.find(&format!("{PODS}/{name}")).await?;
            ensure!(pod.is_none(), "it exists");
            Ok(())
        })
        .await?;
        // Without a controller that protects volumes in use, the claim is gone at once or has a finalizer.
        let path = format!("{CLAIMS}/data-{name}");
        let Some(claim) = self.admin.find(&path).await? else {
            return Ok(());
        };
        ensure!(
            claim["metadata"]["deletionTimestamp"].is_string(),
            "{claim}"
        );
        let none = json!({ "metadata": { "finalizers": null } });
        self.admin.patch(&path, Patch::Merge, &none).await.map(drop)
    }
}
