//! The tuning of pools: which manifests are valid, what is written for them, and what is reported.

use api::conditions::{PoolCondition, Status, find};
use serde_json::{Value, json};

use super::*;
use crate::node_pool::conditions::Conditions;
use crate::node_pool::{fixtures, manifest as yaml};

const HUGE_PAGES: &str = "
apiVersion: tuned.openshift.io/v1
kind: Tuned
metadata: {name: huge-pages, namespace: openshift-cluster-node-tuning-operator}
spec:
  profile:
  - name: openshift-huge-pages
    data: |
      [main]
      summary=Boot time configuration for huge pages
      include=openshift-node

      [bootloader]
      cmdline_huge_pages=hugepagesz=2M hugepages=50
  recommend:
  - priority: 20
    profile: openshift-huge-pages
    match:
    - {label: a, match: [{label: b, value: c, type: pod}]}
    operand: {debug: false, tunedConfig: {reapply_sysctl: true}, verbosity: 1}
status: {}
";

const SYSCTL: &str = "
apiVersion: tuned.openshift.io/v1
kind: Tuned
metadata: {name: a-sysctl, creationTimestamp: null}
spec:
  profile: [{name: sysctl, data: \"[main]\\n\\t[sysctl]\\n  vm.swappiness=10   \\n\"}]
  recommend: [{priority: 10, profile: sysctl}]
";

const LATENCY: &str = "
apiVersion: performance.openshift.io/v2
kind: PerformanceProfile
metadata: {name: latency}
spec:
  cpu: {reserved: '0-1', isolated: '2-6,8', offlined: '7', shared: ''}
  hugepages:
    defaultHugepagesSize: 1G
    pages: [{size: 1G, count: 4, node: 0}, {size: 1G, count: 4, node: 1}, {size: 2M, count: 128}]
  numa: {topologyPolicy: single-numa-node}
  net:
    userLevelNetworking: true
    devices: [{interfaceName: 'ens*'}, {vendorID: '0x8086', deviceID: '0x1521'}]
  realTimeKernel: {enabled: true}
  workloadHints: {realTime: true, highPowerConsumption: false, perPodPowerManagement: true}
  nodeSelector: {node-role.kubernetes.io/worker: ''}
";

fn source(name: &str, text: &str) -> Source {
    Source {
        name: name.to_owned(),
        content: Content::Text(text.to_owned()),
    }
}

/// A pool that refers to these ConfigMaps.
fn facts(sources: &[(&str, &str)]) -> Facts {
    let mut facts = fixtures::facts();
    let sources = sources.iter().map(|(name, text)| source(name, text));
    facts.tuning_inputs.sources = sources.collect();
    facts
}

fn written(facts: &Facts) -> Maps {
    Tuning::read(facts).unwrap().maps(facts)
}

fn refused(facts: &Facts) -> String {
    Tuning::read(facts).unwrap_err().to_string()
}

/// The texts of the ConfigMaps, by name.
fn texts(maps: &Maps) -> Vec<(&str, &str)> {
    let maps = maps.desired.iter().map(|it| {
        let name = it.metadata.name.as_deref().unwrap();
        (name, it.data.as_ref().unwrap()[KEY].as_str())
    });
    maps.collect()
}

fn object(text: &str) -> Value {
    let mut documents = yaml::documents(text).unwrap();
    assert_eq!(documents.len(), 1, "{text}");
    documents.remove(0).1
}

#[test]
fn manifests_are_copied_into_the_control_plane() {
    let facts = facts(&[
        ("latency", LATENCY),
        ("huge-pages", HUGE_PAGES),
        ("sysctl", SYSCTL),
    ]);
    let maps = written(&facts);
    let key = "hypershift.openshift.io/nodePool";
    let entries = |entries: &[(&str, &str)]| -> Option<BTreeMap<String, String>> {
        let entries = entries.iter();
        let entries = entries.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Some(entries.collect())
    };
    for (map, label) in maps.desired.iter().zip([
        "hypershift.openshift.io/tuned-config",
        "hypershift.openshift.io/performanceprofile-config",
    ]) {
        assert_eq!(map.metadata.namespace.as_deref(), Some("clusters-dev"));
        let labels = entries(&[(label, "true"), (key, "workers")]);
        assert_eq!(map.metadata.labels, labels);
        let annotations = entries(&[(key, "clusters/workers")]);
        assert_eq!(map.metadata.annotations, annotations);
        assert_eq!(map.immutable, Some(false));
        assert_eq!(map.data.as_ref().unwrap().len(), 1);
    }
    assert!(maps.obsolete.is_empty());
    let texts = texts(&maps);
    let [("tuned-workers", tuned), ("latency-workers", profile)] = texts[..] else {
        panic!("{texts:?}");
    };
    let (first, second) = tuned.split_once("\n---\n").unwrap();
    for (found, expected) in [(first, SYSCTL), (second, HUGE_PAGES), (profile, LATENCY)] {
        let mut expected = object(expected);
        expected.as_object_mut().unwrap().remove("status");
        expected["metadata"]["creationTimestamp"] = Value::Null;
        assert_eq!(object(found), expected, "{found}");
        assert!(found.contains("  creationTimestamp: null\n"), "{found}");
    }
}

#[test]
fn the_text_does_not_depend_on_order_and_comments() {
    let two = format!("# Two.\n{HUGE_PAGES}---\n{SYSCTL}---\n");
    let expected = written(&facts(&[("a", HUGE_PAGES), ("b", SYSCTL)]));
    for sources in [
        &[("a", SYSCTL), ("b", HUGE_PAGES)][..],
        &[("a", two.as_str())],
        &[("a", two.as_str()), ("b", SYSCTL)],
        &[("b", SYSCTL), ("a", HUGE_PAGES), ("b", SYSCTL)],
    ] {
        assert_eq!(written(&facts(sources)), expected, "{sources:?}");
    }
}

#[test]
fn copies_that_are_not_desired_any_more_are_obsolete() {
    let written_before = ["tuned-workers", "latency-workers", "older-workers"];
    let written_before = written_before.map(|name| Written {
        name: name.to_owned(),
        is_profile: name != "tuned-workers",
    });
    let none: &[(&str, &str)] = &[];
    for (sources, expected) in [
        (none, &written_before[..]),
        (&[("sysctl", SYSCTL)], &written_before[1..]),
        (
            &[("sysctl", SYSCTL), ("latency", LATENCY)],
            &written_before[2..],
        ),
    ] {
        let mut facts = facts(sources);
        facts.tuning_inputs.written = written_before.to_vec();
        let expected: Vec<_> = expected.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(written(&facts).obsolete, expected, "{sources:?}");
    }
}

/// Check T22: a small text does not become a large object.
#[test]
fn invalid_manifests_are_refused_with_a_fix() {
    let wrong = |text: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    };
    let tuned = |from: &str, to: &str| wrong(HUGE_PAGES, from, to);
    let latency = |from: &str, to: &str| wrong(LATENCY, from, to);
    let aliases = vec!["*a"; 500].join(", ");
    for (text, expected) in [
        (
            "kind: KubeletConfig\napiVersion: machineconfiguration.openshift.io/v1".to_owned(),
            "document 1 is of kind \"KubeletConfig\"",
        ),
        (
            tuned("tuned.openshift.io/v1", "tuned.openshift.io/v2"),
            "in \"tuned.openshift.io/v2\", which is not supported as tuning: use Tuned of tuned.openshift.io/v1",
        ),
        (
            latency("openshift.io/v2", "openshift.io/v1"),
            "or PerformanceProfile of performance.openshift.io/v2",
        ),
        (
            tuned("metadata: {name: huge-pages, ", "metadata: {"),
            "document 1, a Tuned, has no metadata.name: add it",
        ),
        ("a: hunter2\nb: [".to_owned(), "is not valid YAML"),
        (
            format!("a: &a [{}]\nb: [{aliases}]", vec!["1"; 500].join(", ")),
            "aliases",
        ),
        ("# Nothing.\n".to_owned(), "it has no manifest"),
        (
            tuned("    data: |", "    date: |"),
            "Tuned huge-pages: spec.profile[0].data is missing: add it; ConfigMap bad: Tuned huge-pages: \
             spec.profile[0].date is not known: remove it, or use one of data, name",
        ),
        (
            tuned("value: c", "values: c"),
            "spec.recommend[0].match[0].match[0].values is not known",
        ),
        (
            tuned("priority: 20", "priority: -1"),
            "spec.recommend[0].priority has to be a number that is not negative",
        ),
        (
            tuned("debug: false", "debug: 7"),
            "spec.recommend[0].operand.debug has to be true or false",
        ),
        (tuned("status: {}", "stats: {}"), "stats is not known"),
        (
            tuned("spec:\n", "spec: []\nother:\n"),
            "spec has to be an object",
        ),
        (
            latency("{reserved: '0-1', isolated: '2-6,8', ", "{"),
            "spec.cpu.isolated is missing: add it; ConfigMap bad: PerformanceProfile latency: spec.cpu.reserved is \
             missing",
        ),
        (
            latency("'0-1'", "0"),
            "spec.cpu.reserved has to be a text: put it in quotation marks",
        ),
        (
            latency("'0-1'", "''"),
            "spec.cpu.reserved has to be a list of processors",
        ),
        (
            latency("'0-1'", "'1-0'"),
            "spec.cpu.reserved has to be a list of processors",
        ),
        (
            latency("'0-1'", "'0-2'"),
            "spec.cpu.reserved and spec.cpu.isolated have processors in common",
        ),
        (
            latency("offlined: '7'", "offlined: '7-9'"),
            "spec.cpu.isolated and spec.cpu.offlined have",
        ),
        (
            latency("defaultHugepagesSize: 1G", "defaultHugepagesSize: 1Gi"),
            "spec.hugepages.defaultHugepagesSize is no size",
        ),
        (
            latency("size: 2M", "size: 3M"),
            "spec.hugepages.pages[2].size is no size",
        ),
        (
            latency("node: 1", "node: 0"),
            "spec.hugepages.pages[1] has the size and the node of another one",
        ),
        (
            latency("single-numa-node", "single-node"),
            "spec.numa.topologyPolicy is not known: use one of none, best-effort",
        ),
        (
            latency("'ens*'", "''"),
            "spec.net.devices[0].interfaceName is empty",
        ),
        (
            latency("'0x1521'", "'1521'"),
            "spec.net.devices[1].deviceID has to be four",
        ),
        (
            latency("vendorID: '0x8086', ", ""),
            "spec.net.devices[1] has a deviceID without a vendorID",
        ),
        (
            latency("realTime: true", "realTime: false"),
            "spec.workloadHints.realTime is false",
        ),
        (
            latency("highPowerConsumption: false", "highPowerConsumption: true"),
            "disable one of them",
        ),
        (
            latency("realTime: true", "mixedCpus: true"),
            "needs processors in spec.cpu.shared",
        ),
    ] {
        let found = refused(&facts(&[("good", SYSCTL), ("bad", &text)]));
        assert!(found.starts_with("ConfigMap bad: "), "{found}");
        assert!(found.contains(expected), "{found}\n{expected}");
        assert!(!found.contains("hunter2"), "{found}");
        assert!(!found.contains("ConfigMap good"), "{found}");
    }
}

#[test]
fn all_problems_are_reported_together() {
    let mut facts = facts(&[("wrong", "kind: Pod\napiVersion: v1")]);
    for (name, content) in [("gone", Content::Missing), ("empty", Content::Empty)] {
        let name = name.to_owned();
        facts.tuning_inputs.sources.push(Source { name, content });
    }
    let found = refused(&facts);
    let found: Vec<_> = found.split("; ").collect();
    assert_eq!(found.len(), 3, "{found:?}");
    for (found, expected) in found.iter().zip([
        "ConfigMap wrong: document 1 is of kind \"Pod\" in \"v1\"",
        "ConfigMap gone does not exist: create it, or remove it from spec.tuningConfig",
        "ConfigMap empty has no key tuning: add a Tuned or a PerformanceProfile there",
    ]) {
        assert!(found.starts_with(expected), "{found}");
    }
}

/// At most one performance profile per pool, and no two manifests for one object.
#[test]
fn manifests_that_exclude_each_other_are_refused() {
    let other = LATENCY.replace("name: latency", "name: throughput");
    let both = format!("{LATENCY}---{other}");
    let twice = format!("{LATENCY}---{LATENCY}");
    let same_name = SYSCTL.replace("a-sysctl", "huge-pages");
    for (sources, expected) in [
        (
            &[("a", LATENCY), ("b", other.as_str())][..],
            "a NodePool supports one PerformanceProfile, and 2 are given (ConfigMaps a, b): keep one of them",
        ),
        (&[("a", both.as_str())], "2 are given (ConfigMaps a)"),
        (&[("a", twice.as_str())], "2 are given (ConfigMaps a)"),
        (
            &[("a", LATENCY), ("b", LATENCY), ("c", LATENCY)],
            "3 are given (ConfigMaps a, b, c)",
        ),
        (
            &[("b", same_name.as_str()), ("a", HUGE_PAGES)],
            "Tuned huge-pages is defined more than once (ConfigMaps a, b): rename or remove one",
        ),
    ] {
        let found = refused(&facts(sources));
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn tuning_that_fits_into_no_config_map_is_refused() {
    let large = SYSCTL.replace("swappiness", &"s".repeat(MOST_BYTES));
    let found = refused(&facts(&[("small", SYSCTL), ("large", &large)]));
    assert!(
        found.contains("and at most 1000000 are supported"),
        "{found}"
    );
    assert!(found.contains("The largest is ConfigMap large"), "{found}");
    // The normalized text may be longer than what it is made of.
    let tuning = Tuning {
        tuned: Some("a".repeat(MOST_BYTES + 1)),
        profile: None,
    };
    let found = tuning.conflicts(&fixtures::facts());
    let [found] = &found[..] else {
        panic!("{found:?}");
    };
    assert!(
        found.starts_with("the text of the Tuned manifests has 1000001 bytes"),
        "{found}"
    );
}

/// Check T09: names of users are in the names of the copies.
#[test]
fn objects_of_others_are_not_overwritten() {
    let sources = [("latency", LATENCY), ("sysctl", SYSCTL)];
    for (taken, expected) in [
        (
            "latency-workers",
            "ConfigMap clusters-dev/latency-workers, which is to have the PerformanceProfile, is not of this NodePool: \
             rename ConfigMap latency",
        ),
        (
            "tuned-workers",
            "ConfigMap clusters-dev/tuned-workers, which is to have the Tuned manifests, is not of this NodePool: \
             delete it if it is not used",
        ),
    ] {
        let mut facts = facts(&sources);
        facts.tuning_inputs.others = [taken.to_owned(), "root-ca".to_owned()].into();
        assert!(refused(&facts).starts_with(expected), "{}", refused(&facts));
    }
    // The control plane may not have its own object yet.
    let mut of_control_plane = facts(&[("root", LATENCY)]);
    of_control_plane.pool.metadata.name = Some("ca".to_owned());
    let found = refused(&of_control_plane);
    assert!(found.contains("clusters-dev/root-ca"), "{found}");
    let found = refused(&facts(&[("tuned", LATENCY)]));
    assert!(found.ends_with("rename ConfigMap tuned"), "{found}");
    let mut long = facts(&[("sysctl", SYSCTL)]);
    long.pool.metadata.name = Some("w".repeat(64));
    let found = refused(&long);
    assert!(found.contains("at most 63"), "{found}");
}

#[test]
fn config_maps_are_the_pools_by_annotation_or_label() {
    let pool = fixtures::pool();
    let key = "hypershift.openshift.io/nodePool";
    for (annotation, owner, label, expected) in [
        (
            Some("clusters/workers"),
            Some("workers"),
            TUNED,
            Role::Tuned,
        ),
        (Some("clusters/workers"), None, PROFILE, Role::Profile),
        (None, Some("workers"), PROFILE, Role::Profile),
        (None, Some("workers"), REPORT, Role::Report),
        (None, Some("workers"), "a", Role::Other),
        (None, None, TUNED, Role::Other),
        (None, Some("others"), TUNED, Role::Other),
        (Some("clusters/others"), Some("workers"), TUNED, Role::Other),
        (Some("other/workers"), Some("workers"), REPORT, Role::Other),
    ] {
        let metadata: ObjectMeta = serde_json::from_value(json!({
            "annotations": annotation.map(|it| json!({ key: it })),
            "labels": { key: owner.unwrap_or("nothing"), label: "true" },
        }))
        .unwrap();
        let name = format!("{annotation:?} {owner:?} {label}");
        assert_eq!(role(&metadata, &pool), expected, "{name}");
        let is_written = matches!(expected, Role::Tuned | Role::Profile);
        assert_eq!(may_write(&metadata, &pool), is_written, "{name}");
    }
}

const REPORTED: &str = "
conditions:
- {type: Available, status: 'True', reason: '', message: ''}
- {type: Upgradeable, status: 'True', reason: AsExpected, message: '', lastTransitionTime: '2026-11-22T00:00:00Z'}
- {type: Degraded, status: 'False'}
- {type: Other, status: 'False', reason: Other}
tuned: openshift-cluster-node-tuning-operator/openshift-node-performance-latency
";

/// The performance conditions after a report: type, status and reason.
fn reported(reports: &[Source]) -> Vec<(String, String, String)> {
    let mut conditions = Conditions::new(Vec::new(), Some(3), fixtures::facts().now);
    conditions.set(PoolCondition::PerformanceProgressing, true, "Before", "");
    report(reports, &mut conditions);
    let conditions = conditions.list().iter().map(|it| {
        let (_, about) = it.type_.split_once('/').unwrap();
        let reason = it.reason.clone().unwrap();
        (about.to_owned(), it.status.clone(), reason)
    });
    conditions.collect()
}

#[test]
fn the_state_of_a_performance_profile_is_reported() {
    let row = |about: &str, status: &str, reason: &str| {
        (about.to_owned(), status.to_owned(), reason.to_owned())
    };
    let unknown = ["Progressing", "Available", "Upgradeable", "Degraded"]
        .map(|it| row(it, "Unknown", "StatusUnknown"));
    for (name, reports, expected) in [
        (
            "no report yet",
            vec![],
            vec![row("Progressing", "True", "Before")],
        ),
        (
            "a report",
            vec![source("status", REPORTED)],
            vec![
                row("Available", "True", "Reported"),
                row("Upgradeable", "True", "AsExpected"),
                row("Degraded", "False", "Reported"),
            ],
        ),
        (
            "a report without conditions",
            vec![source("status", "tuned: a")],
            vec![],
        ),
        (
            "several reports",
            vec![source("a", REPORTED), source("b", REPORTED)],
            unknown.to_vec(),
        ),
        (
            "no YAML",
            vec![source("status", "conditions: [")],
            unknown.to_vec(),
        ),
        (
            "no key",
            vec![Source {
                name: "status".to_owned(),
                content: Content::Empty,
            }],
            unknown.to_vec(),
        ),
    ] {
        assert_eq!(reported(&reports), expected, "{name}");
    }
}

#[test]
fn long_reasons_are_cut_and_several_reports_are_named() {
    let long = format!(
        "conditions: [{{type: Degraded, status: 'True', reason: {}}}]",
        "r".repeat(2000)
    );
    let found = reported(&[source("status", &long)]);
    let [(_, _, reason)] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(reason.len(), 1024);
    let mut conditions = Conditions::new(Vec::new(), Some(3), fixtures::facts().now);
    report(
        &[source("a", REPORTED), source("b", REPORTED)],
        &mut conditions,
    );
    let found = find(conditions.list(), PoolCondition::PerformanceDegraded).unwrap();
    assert_eq!(Status::read(&found.status), Status::Unknown);
    let message = found.message.as_deref().unwrap();
    assert!(
        message.starts_with("ConfigMaps a, b of the control plane"),
        "{message}"
    );
    clear(&mut conditions);
    assert!(conditions.list().is_empty());
}
