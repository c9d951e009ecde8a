//! The order in which images are chosen, and what is told when there is none.

use std::sync::Arc;

use api::annotations::cluster::CONTROL_PLANE_OPERATOR_IMAGE;
use api::group::Side;
use payload::operator_image::Labels;
use payload::{Capability, OperatorOverrides};

use super::*;
use crate::hosted_cluster::facts::ReleaseIs;
use crate::hosted_cluster::fixture;
use crate::hosted_cluster::validate::{Verdict, validate};

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

/// What a case begins with, and what is expected of it.
struct Case {
    name: &'static str,
    side: Side,
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
            side: Side::Private,
            version,
            labels,
            is_annotated: false,
            has_table: false,
            has_own: false,
        }
    }

    fn facts(&self) -> Facts {
        let mut facts = fixture::facts(fixture::hosted_cluster("none"), self.side);
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
fn an_operator_that_knows_nothing_of_private_types_is_replaced() {
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
        let verdicts = validate(&facts);
        match (operator_image(&facts), expected) {
            (Ok(image), Ok(expected)) => {
                assert!(image.starts_with(expected), "{}: {image}", case.name);
                assert!(verdicts.allow_changes(), "{}: {verdicts:?}", case.name);
            }
            (Err(unfit), Err(expected)) => {
                assert!(
                    unfit.to_string().contains(expected),
                    "{}: {unfit}",
                    case.name
                );
                assert!(
                    !verdicts.allow_changes(),
                    "{}: nothing half-made",
                    case.name
                );
                let Verdict::Bad { reason, message } = verdicts.supported else {
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
fn on_standard_types_every_release_runs_its_own_operator() {
    for labels in [known(), old(), away()] {
        for version in ["4.14.9", "4.22.0"] {
            let case = Case {
                side: Side::Standard,
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
fn a_release_that_cannot_be_read_is_told_as_that_and_not_as_old() {
    let mut facts = Case::of("unread", "4.22.0", known()).facts();
    facts.release = ReleaseIs::NoPullSecret;
    assert_eq!(operator_image(&facts), Err(Unfit::NoRelease));
    assert!(validate(&facts).supported.is_good());
}
