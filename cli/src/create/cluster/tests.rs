//! What is rendered for each platform, and what is refused.

mod aws;
mod clouds;
mod defaults;
mod google_cloud;
mod looked_up;
mod openstack;
mod refused;

use std::path::{Path, PathBuf};

use clap::Parser;
use serde_json::Value;

use super::objects::objects;
use super::*;
use crate::crds::output::{Format, stream};

/// A command line of this subcommand alone.
#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    cluster: Cluster,
}

/// Platform, name of the golden file, flags beside the usual ones.
const ROWS: [(&str, &str, &[&str]); 7] = [
    (
        "aws",
        "aws",
        &[
            "--infra-json=aws-infra.json",
            "--iam-json=aws-iam.json",
            "--node-pool-replicas=2",
            "--additional-tags=team=a",
        ],
    ),
    (
        "aws",
        "aws-private-kms",
        &[
            "--infra-json=aws-infra.json",
            "--iam-json=aws-iam.json",
            "--endpoint-access=PublicAndPrivate",
            "--external-dns-domain=apps.example.com",
            "--kms-key-arn=arn:aws:kms:us-east-1:000000000000:key/a",
            "--auto-repair",
            "--node-drain-timeout=30m",
            "--arch=arm64",
            "--multi-arch",
        ],
    ),
    (
        "agent",
        "agent",
        &[
            "--agent-namespace=hosts",
            "--api-server-address=192.0.2.1",
            "--agentLabelSelector=size=large",
            "--base-domain=example.com",
        ],
    ),
    (
        "kubevirt",
        "kubevirt",
        &[
            "--node-pool-replicas=2",
            "--cores=4",
            "--memory=16Gi",
            "--infra-storage-class-mapping=fast/guest-fast,group=a",
        ],
    ),
    (
        "kubevirt",
        "kubevirt-node-ports",
        &[
            "--service-publishing-strategy=NodePort",
            "--api-server-address=192.0.2.1",
            "--host-device-name=gpu,count:2",
            "--additional-network=ns/net",
            "--root-volume-access-modes=ReadWriteMany",
            "--containerdisk=images.example.com/disk:1",
        ],
    ),
    (
        "none",
        "none",
        &[
            "--expose-through-load-balancer",
            "--node-pool-replicas=-1",
            "--control-plane-availability-policy=SingleReplica",
        ],
    ),
    (
        "none",
        "none-everything",
        &[
            "--external-api-server-address=192.0.2.1",
            "--namespace=mine",
            "--infra-id=a-12345",
            "--base-domain=example.com",
            "--base-domain-prefix=none",
            "--ssh-key=ssh-key.pub",
            "--additional-trust-bundle=bundle.txt",
            "--image-content-sources=mirrors.yaml",
            "--fips",
            "--feature-set=TechPreviewNoUpgrade",
            "--annotations=a.example.com/b=c",
            "--labels=d=e",
            "--control-plane-operator-image=images.example.com/cpo:1",
            "--pausedUntil=true",
            "--network-type=Other",
            "--allocate-node-cidrs",
            "--disable-multi-network",
            "--default-dual",
            "--machine-cidr=192.0.2.0/24",
            "--kas-dns-name=api.example.com",
            "--etcd-storage-class=fast",
            "--etcd-storage-size=16Gi",
            "--node-selector=f=g",
            "--pods-labels=h=i",
            "--toleration=key=a,operator=Exists,effect=NoSchedule",
            "--olm-catalog-placement=guest",
            "--olm-disable-default-sources",
            "--disable-cluster-capabilities=ImageRegistry",
            "--enable-cluster-capabilities=baremetal",
            "--node-upgrade-type=Replace",
        ],
    ),
];

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/create")
}

/// Flags that name files of this test, with their paths.
fn with_paths(flag: &str) -> String {
    match flag.split_once('=') {
        Some((name, file)) if data().join(file).is_file() => {
            format!("{name}={}", data().join(file).display())
        }
        _ => flag.to_owned(),
    }
}

fn parse(platform: &str, flags: &[&str]) -> Result<Cluster, clap::Error> {
    let usual = [
        "--name=a",
        "--release-image=registry.example.com/release:1",
        "--pull-secret=pull-secret.json",
    ];
    let words = ["create", platform].map(str::to_owned).into_iter();
    let flags = usual.iter().chain(flags).map(|flag| with_paths(flag));
    Ok(Line::try_parse_from(words.chain(flags))?.cluster)
}

fn resolved(cluster: &Cluster, program: Program) -> anyhow::Result<(Options, Parts)> {
    match cluster {
        Cluster::Agent(of) => resolve(&of.common, &of.platform, program),
        Cluster::Aws(of) => resolve(&of.common, &of.platform, program),
        Cluster::Azure(of) => resolve(&of.common, &of.platform, program),
        Cluster::Gcp(of) => resolve(&of.common, &of.platform, program),
        Cluster::Kubevirt(of) => resolve(&of.common, &of.platform, program),
        Cluster::None(of) => resolve(&of.common, &of.platform, program),
        Cluster::OpenStack(of) => resolve(&of.common, &of.platform, program),
        Cluster::PowerVs(of) => resolve(&of.common, &of.platform, program),
    }
}

fn rendered(cluster: &Cluster) -> anyhow::Result<Vec<Value>> {
    let (mut options, parts) = resolved(cluster, Program::Hcp)?;
    // What is random would differ each time.
    options.encryption_key = vec![7; 32];
    if options.infra_id.len() == "a-12345".len() && options.infra_id != "a-12345" {
        options.infra_id = "a-vwxyz".to_owned();
    }
    Ok(objects(&options, &parts))
}

#[test]
fn objects_are_those_of_the_golden_files() {
    for (platform, name, flags) in ROWS.into_iter().chain(openstack::ROWS) {
        let objects = rendered(&parse(platform, flags).unwrap()).unwrap();
        let text = stream(&objects, Format::Yaml).unwrap();
        let path = data().join("golden").join(format!("{name}.yaml"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, golden, "{name}: UPDATE_GOLDEN=1 rewrites it");
    }
}

#[test]
fn a_key_that_is_made_is_in_its_secret_with_both_parts() {
    let flags = ["--external-api-server-address=192.0.2.1", "--generate-ssh"];
    let objects = rendered(&parse("none", &flags).unwrap()).unwrap();
    let named = |kind: &str, name: &str| {
        let mut found = objects.iter();
        found
            .find(|it| it["kind"] == kind && it["metadata"]["name"] == name)
            .unwrap()
    };
    let key = &named("Secret", "a-ssh-key")["stringData"];
    assert!(key["id_rsa.pub"].as_str().unwrap().starts_with("ssh-rsa "));
    assert!(key["id_rsa"].as_str().unwrap().contains("PRIVATE KEY"));
    let spec = &named("HostedCluster", "a")["spec"];
    assert_eq!(spec["sshKey"]["name"], "a-ssh-key");
    let both = [flags[0], flags[1], "--ssh-key=ssh-key.pub"];
    parse("none", &both).unwrap_err();
}

#[test]
fn objects_obey_the_rules_of_their_kinds() {
    let others = clouds::ROWS.into_iter().chain(defaults::ROWS);
    let others = others.chain(google_cloud::ROWS).chain(openstack::ROWS);
    for (platform, name, flags) in ROWS.into_iter().chain(others) {
        for object in rendered(&parse(platform, flags).unwrap()).unwrap() {
            let kind = object["kind"].as_str().unwrap();
            let problems = match kind {
                "HostedCluster" => {
                    problems::<api::hypershift::v1beta1::hosted_cluster::HostedCluster>(&object)
                }
                "NodePool" => problems::<api::hypershift::v1beta1::node_pool::NodePool>(&object),
                _ => continue,
            };
            assert!(problems.is_empty(), "{name}, {kind}: {problems:#?}");
        }
    }
}

/// Fields that the type does not know.
fn problems<K: serde::de::DeserializeOwned + serde::Serialize>(object: &Value) -> Vec<String> {
    let typed: K = match serde_json::from_value(object.clone()) {
        Ok(typed) => typed,
        Err(error) => return vec![error.to_string()],
    };
    let back = serde_json::to_value(typed).unwrap();
    let mut lost = Vec::new();
    missing("", object, &back, &mut lost);
    lost
}

/// Paths of `written` that `read` does not have.
fn missing(path: &str, written: &Value, read: &Value, lost: &mut Vec<String>) {
    match (written, read) {
        (Value::Object(fields), Value::Object(_)) => {
            for (field, value) in fields {
                let path = format!("{path}.{field}");
                match read.get(field) {
                    Some(there) => missing(&path, value, there, lost),
                    None if *value == serde_json::json!("") || value.is_null() => {}
                    None => lost.push(path),
                }
            }
        }
        (Value::Array(values), Value::Array(there)) if values.len() == there.len() => {
            for (value, there) in values.iter().zip(there) {
                missing(path, value, there, lost);
            }
        }
        _ if path.ends_with("Timeout") => {}
        _ if written == read => {}
        _ => lost.push(format!("{path}: {written} became {read}")),
    }
}
