//! The order in which images are selected, and the message if there is none.

use std::sync::Arc;

use api::annotations::cluster::CONTROL_PLANE_OPERATOR_IMAGE;
use api::group::CapiTypes;
use payload::operator_image::Labels;
use payload::{Capability, OperatorOverrides};

use super::*;
use crate::facts::ReleaseIs;
use crate::facts::fixture;
use crate::hosted_cluster::validate::{Finding, validate};

const OWN: &str = "images.example.com/own-operator:v1";
const FROM_TABLE: &str = "images.example.com/from-table:v1";
const ANNOTATED: &str = "images.example.com/annotated:v1";
const TABLE: &str = "
platforms:
  none:
    overrides:
    - version: 4.14.9
      cpoImage: images.example.com/from-table:v1
  aws:
    overrides:
    - version: 4.15.3
      cpoImage: images.example.com/for-another-platform:v1
";

/// The input of a case, and the expected result.
struct Case {
    name: &'static str,
    types: CapiTypes,
    version: &'static str,
    labels: Labels,
    is_annotated: bool,
    has_table: bool,
    has_own: bool,
}

impl Case {
    fn of(name: &'static str, version: &'static str, labels: Labels) -> Self {
        Self {
            name,
            types: CapiTypes::Private,
            version,
            labels,
            is_annotated: false,
            has_table: false,
            has_own: false,
        }
    }

    fn facts(&self) -> Facts {
        let mut facts = fixture::facts(fixture::hosted_cluster("none"), self.types);
        let mut release = fixture::release();
        release.version = self.version.parse().unwrap();
        facts.release = ReleaseIs::Read(Arc::new(release));
        facts.released_operator = self.labels.clone();
        if self.is_annotated {
            let key = CONTROL_PLANE_OPERATOR_IMAGE.key().to_owned();
            facts.cluster.metadata.annotations = Some([(key, ANNOTATED.to_owned())].into());
        }
        if self.has_table {
            facts.images.operator.overrides = Arc::new(OperatorOverrides::parse(TABLE).unwrap());
        }
        facts.images.operator.fallback = self.has_own.then(|| OWN.to_owned());
        facts
    }
}

fn known() -> Labels {
    Labels::Read([(Capability::PrivateTypes.label(), "true".to_owned())].into())
}

fn old() -> Labels {
    Labels::Read(
        [(
            "io.openshift.hypershift.restricted-psa".to_owned(),
            "true".to_owned(),
        )]
        .into(),
    )
}

fn away() -> Labels {
    Labels::Unreadable("the registry does not answer".to_owned())
}

#[test]
fn an_operator_without_private_types_support_is_replaced() {
    let released = "images.example.com/4.20.1/hypershift@sha256:";
    let table = [
        (
            Case::of("a release of today", "4.22.0", known()),
            Ok(released),
        ),
        (
            Case {
                has_table: true,
                has_own: true,
                ..Case::of("a release of today, with everything", "4.22.0", known())
            },
            Ok(released),
        ),
        (
            Case {
                has_table: true,
                has_own: true,
                ..Case::of("one in the table", "4.14.9", old())
            },
            Ok(FROM_TABLE),
        ),
        (
            Case {
                has_table: true,
                ..Case::of(
                    "one in the table, whose labels are not known",
                    "4.14.9",
                    away(),
                )
            },
            Ok(FROM_TABLE),
        ),
        (
            Case {
                has_table: true,
                has_own: true,
                ..Case::of(
                    "one that the table has for another platform",
                    "4.15.3",
                    old(),
                )
            },
            Ok(OWN),
        ),
        (
            Case {
                is_annotated: true,
                has_table: true,
                has_own: true,
                ..Case::of("an annotation", "4.14.9", old())
            },
            Ok(ANNOTATED),
        ),
        (
            Case::of("an old one, and nothing else", "4.15.3", old()),
            Err(
                "control-plane-operator of its release 4.15.3 (images.example.com/4.20.1/hypershift@sha256:",
            ),
        ),
        (
            Case {
                has_own: true,
                ..Case::of("one that may be either", "4.15.3", away())
            },
            Err("its labels cannot be read: the registry does not answer"),
        ),
    ];
    for (case, expected) in table {
        let facts = case.facts();
        let findings = validate(&facts);
        match (operator_image(&facts), expected) {
            (Ok(image), Ok(expected)) => {
                assert!(image.starts_with(expected), "{}: {image}", case.name);
                assert!(findings.allow_changes(), "{}: {findings:?}", case.name);
            }
            (Err(unfit), Err(expected)) => {
                assert!(
                    unfit.to_string().contains(expected),
                    "{}: {unfit}",
                    case.name
                );
                assert!(
                    !findings.allow_changes(),
                    "{}: nothing half-made",
                    case.name
                );
                let Finding::Bad { reason, message } = findings.supported else {
                    unreachable!("{}", case.name);
                };
                assert_eq!(reason, "UnsupportedHostedCluster");
                assert!(
                    message.contains("--control-plane-operator-overrides"),
                    "{message}"
                );
            }
            (found, expected) => unreachable!("{}: {found:?} {expected:?}", case.name),
        }
    }
}

#[test]
fn standard_clusters_run_the_operator_of_their_release() {
    for labels in [known(), old(), away()] {
        for version in ["4.14.9", "4.22.0"] {
            let case = Case {
                types: CapiTypes::Standard,
                has_table: true,
                has_own: true,
                ..Case::of("standard", version, labels.clone())
            };
            let facts = case.facts();
            let image = operator_image(&facts).unwrap();
            let released = "images.example.com/4.20.1/hypershift@";
            assert!(image.starts_with(released), "{version}: {image}");
            assert!(validate(&facts).allow_changes(), "{version} {labels:?}");
        }
    }
}

#[test]
fn an_unreadable_release_is_not_reported_as_too_old() {
    let mut facts = Case::of("unread", "4.22.0", known()).facts();
    facts.release = ReleaseIs::NoPullSecret;
    assert_eq!(operator_image(&facts), Err(Unfit::NoRelease));
    assert!(validate(&facts).supported.is_good());
}
