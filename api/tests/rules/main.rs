//! Every rule has an object that it accepts and one that it refuses, with a message that says what to do.

mod cases;
mod coverage;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use api::crds;
use api::features::FeatureSet;
use kube_cel::{ErrorKind, ValidationError, Validator};
use serde_json::Value;

use cases::{Case, Verdict};
use coverage::Coverage;

#[test]
fn rules_accept_and_reject_as_listed() {
    let mut report = String::new();
    for features in FeatureSet::ALL {
        let schemas = schemas(features);
        for case in cases::of(features) {
            let errors = evaluate(&schemas[case.crd.as_str()], &case);
            if let Some(complaint) = complaint(&case, &errors) {
                let _ = writeln!(report, "{} ({}): {complaint}", case.name, case.crd);
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn every_rule_has_an_accepted_and_a_rejected_object() {
    let mut report = String::new();
    for features in FeatureSet::ALL {
        report_gaps(features, &mut report);
    }
    assert!(
        report.is_empty(),
        "add cases to tests/data/rules for:\n{report}"
    );
}

fn report_gaps(features: FeatureSet, report: &mut String) {
    let schemas = schemas(features);
    let mut covered: BTreeMap<_, Coverage> = BTreeMap::new();
    for case in cases::of(features) {
        let schema = &schemas[case.crd.as_str()];
        let coverage = covered.entry(case.crd.clone()).or_default();
        match &case.verdict {
            Verdict::Accepted => coverage.accepted(schema, case.old.as_ref(), &case.object),
            Verdict::Refused(_) => coverage.refused(&evaluate(schema, &case)),
            Verdict::Invalid(_) => {}
        }
    }
    for (name, schema) in &schemas {
        let coverage = covered.entry((*name).to_owned()).or_default();
        for gap in coverage.gaps(schema) {
            let _ = writeln!(report, "{name} ({features}): {gap}");
        }
    }
}

#[test]
fn every_message_is_human_readable() {
    for (name, schema) in schemas(FeatureSet::TechPreviewNoUpgrade) {
        for rule in coverage::rules(&schema) {
            let message = &rule.message;
            assert!(
                message.len() > 20 && message.contains(' ') && !message.contains("self."),
                "{name}{}: {message:?} does not say what to do",
                rule.path
            );
        }
    }
}

/// The schemas of the definitions that a feature set has.
fn schemas(features: FeatureSet) -> BTreeMap<&'static str, Value> {
    let of = |crd: &crds::Crd| {
        let mut rendered = (crd.render)(features);
        let schema = &mut rendered["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        ((crd.name)(), schema.take())
    };
    crds::of(features).chain(crds::GUEST).map(of).collect()
}

/// What the rules say, without an API server.
fn evaluate(schema: &Value, case: &Case) -> Vec<ValidationError> {
    let verdict = Validator::new().validate(schema, &case.object, case.old.as_ref());
    verdict.map_or_else(kube_cel::ValidationErrors::into_vec, |()| Vec::new())
}

/// Where a case does not go as it should.
fn complaint(case: &Case, errors: &[ValidationError]) -> Option<String> {
    let cannot = |error: &&ValidationError| {
        !matches!(
            error.kind,
            ErrorKind::ValidationFailure | ErrorKind::EvaluationError
        )
    };
    if let Some(error) = errors.iter().find(cannot) {
        return Some(format!("cannot be evaluated: {error}"));
    }
    let found: Vec<_> = errors.iter().map(ToString::to_string).collect();
    let found = found.join("; ");
    match &case.verdict {
        Verdict::Accepted if errors.is_empty() => None,
        Verdict::Accepted => Some(format!("should be accepted, and is refused: {found}")),
        Verdict::Refused(words) => {
            let missing = !errors.iter().any(|error| error.message.contains(words));
            missing.then(|| format!("should be refused with {words:?}, and is: {found:?}"))
        }
        Verdict::Invalid(_) => None,
    }
}
