//! Steps of a pass that had nothing to write. Until something that they read changes, they are skipped, so that a pass
//! after one change does only what follows from it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use control_plane_component::facts::Infra;
use control_plane_component::objects::{Objects, Seen};

use super::pass::ReconcileScope;
use super::release::ReleasePair;

/// After this time all steps are done again: certificates expire without a change.
const LONGEST: Duration = Duration::from_mins(1);

/// Inputs of all steps, other than objects.
#[derive(Debug, PartialEq)]
struct Inputs {
    uid: String,
    resource_version: String,
    releases: ReleasePair,
    infra: Infra,
}

/// What the steps read when they had nothing to write.
#[derive(Debug, Default)]
pub(super) struct Settled {
    inputs: Option<Inputs>,
    steps: HashMap<&'static str, Seen>,
    since: Option<Instant>,
}

// === impl Settled ===

impl Settled {
    /// Begins a pass. Nothing is settled if its inputs are others than those of the last one, or after [`LONGEST`].
    pub(super) fn begin(&mut self, scope: &ReconcileScope, now: Instant) {
        let metadata = &scope.hcp.metadata;
        let is_recent = self
            .since
            .is_some_and(|since| now.saturating_duration_since(since) < LONGEST);
        let is_same = self.inputs.as_ref().is_some_and(|inputs| {
            // A HostedControlPlane without a resource version was not read from an API server.
            metadata.resource_version.as_deref() == Some(&*inputs.resource_version)
                && metadata.uid.as_deref() == Some(&*inputs.uid)
                && inputs.releases == scope.releases
                && inputs.infra == scope.infra
        });
        if is_recent && is_same {
            return;
        }
        self.steps.clear();
        self.since = Some(now);
        if !is_same {
            self.inputs = Some(Inputs {
                uid: metadata.uid.clone().unwrap_or_default(),
                resource_version: metadata.resource_version.clone().unwrap_or_default(),
                releases: scope.releases.clone(),
                infra: scope.infra.clone(),
            });
        }
    }

    /// Whether a step would have nothing to write again.
    pub(super) fn is_settled(&self, step: &str, objects: &Objects) -> bool {
        self.steps
            .get(step)
            .is_some_and(|seen| seen.is_current(objects))
    }

    /// Remembers what a step read, or forgets it if the step wrote or failed.
    pub(super) fn ended(&mut self, step: &'static str, seen: Option<Seen>) {
        match seen {
            Some(seen) => {
                self.steps.insert(step, seen);
            }
            None => {
                self.steps.remove(step);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use api::hypershift::v1beta1::HostedControlPlane;
    use control_plane_component::Release;
    use control_plane_component::facts::Endpoint;
    use serde_json::json;

    use super::*;

    fn scope(resource_version: Option<&str>) -> ReconcileScope {
        let text = include_str!(
            "../../../control-plane-component/tests/data/base/hosted-control-plane.yaml"
        );
        let mut hcp: HostedControlPlane = serde_saphyr::from_str(text).unwrap();
        hcp.metadata.uid = Some("uid".to_owned());
        hcp.metadata.resource_version = resource_version.map(str::to_owned);
        let objects =
            [json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" } })];
        ReconcileScope {
            hcp,
            releases: ReleasePair {
                control_plane: Release::default(),
                user: Release::default(),
            },
            infra: Infra::default(),
            objects: objects.into_iter().collect(),
        }
    }

    /// A pass whose only step reads a Secret, and the scope that it leaves.
    fn pass(settled: &mut Settled, mut scope: ReconcileScope, now: Instant) -> bool {
        settled.begin(&scope, now);
        let was_settled = settled.is_settled("step", &scope.objects);
        scope.objects.record();
        scope.objects.secret("a");
        settled.ended("step", scope.objects.recorded());
        was_settled
    }

    #[test]
    fn steps_are_done_again_when_an_input_changes() {
        let now = Instant::now();
        let mut settled = Settled::default();
        assert!(!pass(&mut settled, scope(Some("1")), now));
        assert!(pass(&mut settled, scope(Some("1")), now));
        assert!(!pass(&mut settled, scope(Some("2")), now));
        assert!(pass(&mut settled, scope(Some("2")), now));
        let mut other = scope(Some("2"));
        other.objects.insert(
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" }, "data": {} }),
        );
        assert!(!pass(&mut settled, other, now));
        let mut other = scope(Some("2"));
        other.infra.api = Endpoint {
            host: "api.example".to_owned(),
            port: 6443,
        };
        assert!(!pass(&mut settled, other, now));
        let mut other = scope(Some("2"));
        other.releases.user.version = "4.21.0".to_owned();
        assert!(!pass(&mut settled, other, now));
        let mut other = scope(Some("2"));
        other.hcp.metadata.uid = Some("other".to_owned());
        assert!(!pass(&mut settled, other, now));
        assert!(!pass(&mut settled, scope(None), now));
        assert!(!pass(&mut settled, scope(None), now));
    }

    #[test]
    fn steps_are_done_again_after_a_time() {
        let now = Instant::now();
        let mut settled = Settled::default();
        assert!(!pass(&mut settled, scope(Some("1")), now));
        assert!(pass(&mut settled, scope(Some("1")), now + LONGEST / 2));
        assert!(!pass(&mut settled, scope(Some("1")), now + LONGEST));
        assert!(pass(&mut settled, scope(Some("1")), now + LONGEST * 3 / 2));
    }

    #[test]
    fn a_step_that_wrote_is_done_again() {
        let now = Instant::now();
        let mut settled = Settled::default();
        pass(&mut settled, scope(Some("1")), now);
        settled.ended("step", None);
        assert!(!pass(&mut settled, scope(Some("1")), now));
    }
}
