//! What is rendered for each platform, and what is refused.

mod checks;

use std::path::{Path, PathBuf};

use api::hypershift::v1beta1::platform::PlatformType;
use clap::{Args, Parser};
use serde_json::{Value, json};

use super::args::{BackupArgs, RestoreArgs, ScheduleArgs};
use super::objects;
use crate::crds::output::{Format, stream};

/// A command line with the flags of one command.
#[derive(Debug, Parser)]
struct Line<A: Args> {
    #[command(flatten)]
    args: A,
}

fn parse<A: Args>(flags: &[&str]) -> Result<A, clap::Error> {
    let usual = ["oadp", "--hc-name=a", "--hc-namespace=clusters", "--quiet"];
    let words = usual.iter().chain(flags);
    Ok(Line::<A>::try_parse_from(words)?.args)
}

fn backup(platform: PlatformType, flags: &[&str]) -> Vec<Value> {
    objects::backup(&parse(flags).unwrap(), platform, "a-1")
}

fn schedule(platform: PlatformType, flags: &[&str]) -> Vec<Value> {
    objects::schedule(&parse(flags).unwrap(), platform, "nightly")
}

fn restore(flags: &[&str]) -> Vec<Value> {
    vec![objects::restore(&parse(flags).unwrap(), "a-2")]
}

fn golden(name: &str) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/oadp/golden");
    data.join(format!("{name}.yaml"))
}

#[test]
fn objects_are_those_of_the_golden_files() {
    let (daily, snapshot) = ("--schedule=daily-2am", "--use-etcd-snapshot");
    let agents = "--include-additional-namespaces=hosts,clusters";
    let moved = [
        "--snapshot-move-data=false",
        "--default-volumes-to-fs-backup",
    ];
    for (name, objects) in [
        ("backup-aws", backup(PlatformType::Aws, &["--ttl=720h"])),
        ("backup-agent", backup(PlatformType::Agent, &[agents])),
        ("backup-azure-files", backup(PlatformType::Azure, &moved)),
        ("backup-kubevirt", backup(PlatformType::KubeVirt, &[])),
        ("backup-openstack", backup(PlatformType::OpenStack, &[])),
        ("backup-none", backup(PlatformType::None, &[])),
        ("backup-snapshot", backup(PlatformType::Aws, &[snapshot])),
        ("schedule-aws", schedule(PlatformType::Aws, &[daily])),
        (
            "schedule-kubevirt-snapshot",
            schedule(
                PlatformType::KubeVirt,
                &[
                    daily,
                    snapshot,
                    "--paused",
                    "--use-owner-references",
                    "--skip-immediately",
                ],
            ),
        ),
        ("restore-backup", restore(&["--from-backup=a-1"])),
        (
            "restore-schedule-snapshot",
            restore(&[
                "--from-schedule=nightly",
                snapshot,
                "--existing-resource-policy=none",
                "--preserve-node-ports=false",
            ]),
        ),
    ] {
        let text = stream(&objects, Format::Yaml).unwrap();
        let path = golden(name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, golden, "{name}: UPDATE_GOLDEN=1 rewrites it");
    }
}

#[test]
fn volumes_follow_flags_and_are_left_out_with_a_snapshot() {
    let volumes = |spec: &Value| {
        [
            "snapshotMoveData",
            "defaultVolumesToFsBackup",
            "snapshotVolumes",
        ]
        .map(|field| spec[field].as_bool().unwrap())
    };
    let daily = "--schedule=daily";
    for (flags, of_backup, of_schedule) in [
        (&[][..], [true, false, true], [false, false, true]),
        (
            &["--snapshot-move-data"],
            [true, false, true],
            [true, false, true],
        ),
        (
            &["--snapshot-move-data=false"],
            [false, false, true],
            [false, false, true],
        ),
        (
            &["--default-volumes-to-fs-backup=true"],
            [true, true, true],
            [false, true, true],
        ),
        (&["--use-etcd-snapshot"], [false; 3], [false; 3]),
    ] {
        let made = backup(PlatformType::Aws, flags);
        assert_eq!(volumes(&made[0]["spec"]), of_backup, "{flags:?}");
        let made = schedule(PlatformType::Aws, &[flags, &[daily]].concat());
        let spec = &made[0]["spec"]["template"];
        assert_eq!(volumes(spec), of_schedule, "{flags:?}");
    }
}

/// The namespace of a control plane has dashes for the dots of the cluster's name.
#[test]
fn control_planes_of_clusters_with_dots_are_included() {
    let words = [
        "oadp",
        "--hc-name=a.b",
        "--hc-namespace=clusters",
        "--from-backup=x",
    ];
    let args = Line::<RestoreArgs>::try_parse_from(words).unwrap().args;
    let made = objects::restore(&args, "x");
    let expected = json!(["clusters", "clusters-a-b"]);
    assert_eq!(made["spec"]["includedNamespaces"], expected);
}

#[test]
fn given_resources_replace_those_of_the_platform() {
    let made = backup(PlatformType::Aws, &["--included-resources=secrets,pods"]);
    let spec = &made[0]["spec"];
    assert_eq!(spec["includedResources"], json!(["secrets", "pods"]));
}

#[test]
fn wrong_flags_are_refused() {
    let snapshot = "--use-etcd-snapshot";
    let daily = "--schedule=daily";
    for (flags, expected) in [
        (&[][..], None),
        (&["--name=Nightly"], Some("lower-case letters")),
        (&["--oadp-namespace=a/b"], Some("lower-case letters")),
        (&["--ttl=soon"], Some("soon")),
        (&["--ttl=0s"], Some("at least 1s")),
        (&["--snapshot-move-data=maybe"], Some("maybe")),
        (
            &[snapshot, "--snapshot-move-data=false"],
            Some("cannot be used with"),
        ),
        (
            &[snapshot, "--default-volumes-to-fs-backup"],
            Some("cannot be used with"),
        ),
        (&["--render", "--dry-run"], Some("cannot be used with")),
    ] {
        let found = parse::<BackupArgs>(flags).err().map(|it| it.to_string());
        compare(flags, found, expected);
        let with_schedule = [flags, &[daily]].concat();
        let found = parse::<ScheduleArgs>(&with_schedule).err();
        compare(&with_schedule, found.map(|it| it.to_string()), expected);
    }
    let long = format!("--name={}", "x".repeat(64));
    for (flags, expected) in [
        (&[][..], Some("--schedule")),
        (&["--schedule=0 25 * * *"], Some("hour: \"25\"")),
        (&["--schedule=often"], Some("1 fields instead of 5")),
        (&[daily, long.as_str()], Some("64 characters")),
    ] {
        let found = parse::<ScheduleArgs>(flags).err();
        compare(flags, found.map(|it| it.to_string()), expected);
    }
    for (flags, expected) in [
        (&["--from-backup=a-1"][..], None),
        (&["--from-schedule=nightly", "--restore-pvs=false"], None),
        (&[], Some("--from-backup")),
        (
            &["--from-backup=a-1", "--from-schedule=nightly"],
            Some("cannot be used with"),
        ),
        (
            &["--from-backup=a-1", snapshot, "--restore-pvs"],
            Some("cannot be used with"),
        ),
        (
            &["--from-backup=a-1", "--existing-resource-policy=replace"],
            Some("replace"),
        ),
        (&["--from-backup=../x"], Some("lower-case letters")),
    ] {
        let found = parse::<RestoreArgs>(flags).err();
        compare(flags, found.map(|it| it.to_string()), expected);
    }
}

fn compare(flags: &[&str], found: Option<String>, expected: Option<&str>) {
    match (found, expected) {
        (None, None) => {}
        (Some(error), Some(part)) => assert!(error.contains(part), "{flags:?}: {error}"),
        (found, expected) => panic!("{flags:?}: {found:?} instead of {expected:?}"),
    }
}
