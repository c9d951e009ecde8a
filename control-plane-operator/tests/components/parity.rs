//! Compares components with the reference facts; intended differences are listed with a reason.

mod allowed;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use control_plane_component::Component;
use control_plane_operator::components;

use self::allowed::ALLOWED;
use crate::facts::{self, Embedded, Facts, SCRIPT};
use crate::input;

/// Registry of the described release, replaced by an example registry.
const REAL_RELEASE: &str = concat!("quay", ".io/openshift-release-dev/ocp-release");
const RELEASE: &str = "registry.example.com/release";

/// Path suffixes of default and empty values.
const DEFAULTS: [(&str, &str); 33] = [
    ("volumeClaimTemplates[0].apiVersion", "\"v1\""),
    ("volumeClaimTemplates[0].kind", "\"PersistentVolumeClaim\""),
    (".protocol", "\"TCP\""),
    (".successThreshold", "1"),
    ("Probe.failureThreshold", "3"),
    ("Probe.periodSeconds", "10"),
    ("Probe.timeoutSeconds", "1"),
    (".scheme", "\"HTTP\""),
    (".schedulerName", "\"default-scheduler\""),
    ("template.spec.restartPolicy", "\"Always\""),
    ("spec.revisionHistoryLimit", "10"),
    (".imagePullPolicy", "\"IfNotPresent\""),
    (".fieldRef.apiVersion", "\"v1\""),
    (".resources", "{}"),
    (".status", "{}"),
    (".annotations", "{}"),
    (".configMap.defaultMode", "420"),
    ("rollingUpdate.partition", "0"),
    (" spec.strategy", "{}"),
    ("strategy.type", "\"RollingUpdate\""),
    ("rollingUpdate.maxSurge", "\"25%\""),
    ("rollingUpdate.maxUnavailable", "\"25%\""),
    (" spec.type", "\"ClusterIP\""),
    (" spec", "{}"),
    (".operator", "\"Equal\""),
    (" type", "\"Opaque\""),
    (".weight", "0"),
    (" status.resources", "[]"),
    (".dnsPolicy", "\"ClusterFirst\""),
    (".securityContext", "{}"),
    (".terminationGracePeriodSeconds", "30"),
    (".terminationMessagePath", "\"/dev/termination-log\""),
    (".bearerTokenSecret.key", "\"\""),
];

/// Values of fields that a configuration does not set.
const EMPTY: [&str; 6] = ["\"\"", "\"0s\"", "0", "false", "null", "{}"];

/// Path suffixes of computed values.
const COMPUTED: [&str; 7] = [
    ".message",
    ".lastTransitionTime",
    ".observedGeneration",
    "[hypershift.openshift.io/desired-state-hash]",
    "[component.hypershift.openshift.io/config-hash]",
    " metadata.name",
    ".expr",
];

fn file(component: &Component) -> PathBuf {
    input::root().join(format!("tests/facts/{}.txt", component.name))
}

fn read(component: &Component) -> Facts {
    let text = fs::read_to_string(file(component)).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(" = "))
        .map(|(path, value)| (path.to_owned(), value.to_owned()))
        .collect()
}

fn ours(component: &Component, facts: &Facts) -> Facts {
    let embedded = Embedded::of(facts);
    let files = input::base().component(component).unwrap();
    files
        .iter()
        .flat_map(|file| facts::rendered(&file.object, &embedded))
        .collect()
}

fn is_compared(path: &str, value: &str) -> bool {
    let computed = COMPUTED.iter().any(|end| path.ends_with(end));
    // Go serializes empty fields of configurations; they are not compared.
    let is_config = path.contains("@json.") || path.contains("@yaml.");
    let unset = is_config && EMPTY.contains(&value);
    let default = unset
        || DEFAULTS
            .iter()
            .any(|(end, default)| path.ends_with(end) && value == *default);
    !computed && !default
}

fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(head) else {
        return false;
    };
    (0..=text.len())
        .filter(|at| text.is_char_boundary(*at))
        .any(|at| matches(rest, &text[at..]))
}

/// The rows that allow a difference.
fn allowing(component: &str, path: &str) -> impl Iterator<Item = usize> {
    let rows = ALLOWED.iter().enumerate();
    let rows =
        rows.filter(|(_, (of, pattern, _))| matches(of, component) && matches(pattern, path));
    rows.map(|(number, _)| number)
}

/// Whether the reference's value of a path, and ours, are the same as far as they are compared.
fn is_same(path: &str, expected: Option<&String>, value: Option<&String>) -> bool {
    let compared = |value: Option<&String>| value.is_some_and(|value| is_compared(path, value));
    let equal = expected.is_some_and(|it| it == SCRIPT && value.is_some() || Some(it) == value);
    equal || !compared(expected) && !compared(value)
}

/// A path where the values differ, and both values.
struct Difference {
    path: String,
    there: Option<String>,
    here: Option<String>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let show = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        let (there, here) = (show(&self.there), show(&self.here));
        write!(f, "{}: {there} there, {here} here", self.path)
    }
}

/// All differences, including intended ones.
fn differences(component: &Component) -> Vec<Difference> {
    let theirs = read(component);
    assert!(
        !theirs.is_empty(),
        "{} is missing",
        file(component).display()
    );
    let ours = ours(component, &theirs);
    let paths = theirs
        .keys()
        .chain(ours.keys().filter(|path| !theirs.contains_key(*path)));
    let pairs = paths.map(|path| (path, theirs.get(path), ours.get(path)));
    let different = pairs.filter(|(path, there, here)| !is_same(path, *there, *here));
    different
        .map(|(path, there, here)| Difference {
            path: path.clone(),
            there: there.cloned(),
            here: here.cloned(),
        })
        .collect()
}

/// A row that allows nothing is left over from a difference that has gone, and would hide a new one.
#[test]
fn components_match_reference_facts() {
    let mut text = String::new();
    let mut used = BTreeSet::new();
    for component in components::all() {
        for difference in differences(component) {
            let mut rows = allowing(component.name, &difference.path).peekable();
            if rows.peek().is_none() {
                let _ = writeln!(text, "{}: {difference}", component.name);
            }
            used.extend(rows);
        }
    }
    for (number, (component, pattern, reason)) in ALLOWED.iter().enumerate() {
        assert!(!reason.is_empty());
        if !used.contains(&number) {
            let _ = writeln!(text, "no difference: {component}: {pattern}");
        }
    }
    assert!(text.is_empty(), "\n{text}");
}

/// Intended differences are few: facts that differ count here even if they are allowed.
#[test]
fn nearly_all_facts_of_46_components_are_equal() {
    let (mut all, mut equal, mut objects) = (0_u32, 0_u32, 0);
    for component in components::all() {
        let theirs = read(component);
        let ours = ours(component, &theirs);
        let same = theirs
            .iter()
            .filter(|(path, value)| is_same(path, Some(value), ours.get(*path)));
        equal += u32::try_from(same.count()).unwrap();
        all += u32::try_from(theirs.len()).unwrap();
        objects += input::base().component(component).unwrap().len();
    }
    let share = 100.0 * f64::from(equal) / f64::from(all);
    println!("{equal} of {all} facts are equal ({share:.2} %), in {objects} objects");
    assert_eq!(components::all().len(), 46);
    // Two objects more than described: the API's availability policy is HighlyAvailable.
    assert_eq!(objects, 242 + 2);
    assert!(share >= 98.0, "{share:.2} %");
}

#[test]
fn patterns_match_whole_paths() {
    assert!(matches("a*c", "abbc") && matches("*", "") && !matches("a*c", "abcd"));
}

#[test]
#[ignore = "writes tests/facts from the descriptions in the directory HCP_FACTS"]
fn write_facts() {
    let directory = PathBuf::from(std::env::var("HCP_FACTS").unwrap());
    for component in components::all() {
        let path = directory.join(format!("{}.json", component.name));
        let Ok(text) = fs::read_to_string(path) else {
            continue;
        };
        let text = text.replace(REAL_RELEASE, RELEASE);
        let facts = facts::described(&serde_json::from_str(&text).unwrap());
        let mut lines = format!(
            "# Reference facts of {}, one per line: tests/components/facts.rs.\n",
            component.name
        );
        for (path, value) in facts {
            let _ = writeln!(lines, "{path} = {value}");
        }
        fs::write(file(component), lines).unwrap();
    }
}
