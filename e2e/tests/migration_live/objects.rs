//! Objects by which a platform knows its machines, where they are in the management cluster: which ones they are, and
//! who has requested a change of them.

use anyhow::{Result, ensure};
use serde_json::Value;
use testbed::audit::{Event, Mark};
use testbed::hosted::Fixture;

/// Which object it is, and one of its versions.
pub(crate) fn identity(object: &Value, version: &str) -> String {
    let metadata = &object["metadata"];
    format!("{} {version} {}", metadata["uid"], metadata[version])
}

/// Fails if a change of an object of these groups was requested since then, by whomever and with whatever result;
/// returns the number of the other requests.
pub(crate) fn are_untouched(fixture: &Fixture, since: Mark, groups: &[&str]) -> Result<usize> {
    let events = fixture.testbed.control_plane.audit.since(since)?;
    let (writes, reads) = requests(&events, groups);
    let changes: Vec<_> = writes.into_iter().map(Event::summary).collect();
    ensure!(changes.is_empty(), "changes were requested: {changes:#?}");
    // The platform looks at its objects all the time: no request means that nothing was recorded.
    ensure!(
        !reads.is_empty(),
        "the audit log has no requests of {groups:?}"
    );
    Ok(reads.len())
}

/// The requests of objects of these groups: those that could have changed something, and the others.
fn requests<'e>(events: &'e [Event], groups: &[&str]) -> (Vec<&'e Event>, Vec<&'e Event>) {
    events
        .iter()
        .filter(|event| groups.contains(&event.object_ref.api_group.as_str()))
        .partition(|event| event.is_write())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(verb: &str, group: &str, subresource: &str) -> Event {
        let event = json!({
            "verb": verb,
            "requestURI": format!("/{verb}"),
            "user": { "username": "someone" },
            "objectRef": { "apiGroup": group, "subresource": subresource },
        });
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn changes_are_writes_of_the_groups() {
        for (verb, group, subresource, expected) in [
            ("get", "kubevirt.io", "", (0, 1)),
            ("watch", "kubevirt.io", "", (0, 1)),
            ("patch", "kubevirt.io", "", (1, 0)),
            ("patch", "kubevirt.io", "status", (1, 0)),
            ("delete", "kubevirt.io", "", (1, 0)),
            ("update", "subresources.kubevirt.io", "restart", (1, 0)),
            // Others of which the name only ends like one of the groups, or begins.
            ("update", "other.kubevirt.io", "", (0, 0)),
            ("update", "kubevirt", "", (0, 0)),
            ("update", "", "", (0, 0)),
        ] {
            let events = [event(verb, group, subresource)];
            let (writes, reads) = requests(&events, &["kubevirt.io", "subresources.kubevirt.io"]);
            assert_eq!((writes.len(), reads.len()), expected, "{verb} {group}");
        }
    }

    #[test]
    fn an_object_that_was_made_again_has_another_identity() {
        let object = |uid: &str, version: &str| json!({ "metadata": { "uid": uid, "resourceVersion": version } });
        let first = identity(&object("a", "1"), "resourceVersion");
        assert_eq!(first, identity(&object("a", "1"), "resourceVersion"));
        for other in [object("b", "1"), object("a", "2")] {
            assert_ne!(first, identity(&other, "resourceVersion"), "{other}");
        }
    }
}
