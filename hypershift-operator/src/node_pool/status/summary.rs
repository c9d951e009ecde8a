//! What machines report in one condition: all reasons, and the machines of each. Pure.

use std::collections::BTreeMap;

use crate::node_pool::observed::{Machine, ObservedCondition};

/// The longest text about the machines of one reason, in bytes, and how it ends if there is more.
const LONGEST_OF_REASON: usize = 1000;
const MORE_OF_REASON: &str = "... too many similar errors";
/// The same for the whole message.
const LONGEST_MESSAGE: usize = 3000;
const MORE: &str = "... message truncated";
/// The same for the reasons. The API takes no longer one.
const LONGEST_REASON: usize = 1024;
const MORE_REASONS: &str = ",ReasonsTruncated";
/// The reason of machines that report none.
const UNREPORTED: &str = "WaitingForAvailable";

/// What machines report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) reason: String,
    pub(super) message: String,
}

/// The machines for which it is not so; nothing if it is so for all of them.
pub(super) fn summary(
    machines: &[Machine],
    of: fn(&Machine) -> &ObservedCondition,
    what: &str,
) -> Option<Summary> {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for machine in machines {
        let found = of(machine);
        if found.is_so {
            continue;
        }
        let reason = Some(found.reason.as_str()).filter(|it| !it.is_empty());
        let reason = reason.unwrap_or(UNREPORTED);
        let line = [machine.name.as_str(), reason, found.message.trim()];
        let line: Vec<_> = line.into_iter().filter(|it| !it.is_empty()).collect();
        let lines = by_reason.entry(reason).or_default();
        lines.push(format!("Machine {}", line.join(": ")));
    }
    let count: usize = by_reason.values().map(Vec::len).sum();
    if count == 0 {
        return None;
    }
    let reasons: Vec<_> = by_reason.keys().copied().collect();
    let reason = cut(reasons.join(","), LONGEST_REASON, MORE_REASONS);
    let mut message = format!("{count} of {} machines are not {what}", machines.len());
    for mut lines in by_reason.into_values() {
        lines.sort();
        message.push('\n');
        message += &cut(lines.join("\n"), LONGEST_OF_REASON, MORE_OF_REASON);
    }
    Some(Summary {
        reason,
        message: shortened(message),
    })
}

/// The message, or its beginning if it is too long.
pub(super) fn shortened(message: String) -> String {
    cut(message, LONGEST_MESSAGE, MORE)
}

/// The text, and what stands for its end if it is too long.
pub(super) fn cut(mut text: String, longest: usize, more: &str) -> String {
    if text.len() <= longest {
        return text;
    }
    let mut end = longest.saturating_sub(more.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text + more
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_pool::fixtures;

    fn machine(name: &str, reason: &str, message: &str) -> Machine {
        Machine {
            ready: ObservedCondition {
                is_so: false,
                reason: reason.to_owned(),
                message: message.to_owned(),
            },
            ..fixtures::machine(name)
        }
    }

    fn of(machines: &[Machine]) -> Option<Summary> {
        summary(machines, |it| &it.ready, "ready")
    }

    #[test]
    fn machines_are_grouped_by_reason() {
        for (name, machines, reason, message) in [
            (
                "one",
                vec![
                    fixtures::machine("a"),
                    machine("b", "NotReady", "* no address\n"),
                ],
                "NotReady",
                "1 of 2 machines are not ready\nMachine b: NotReady: * no address",
            ),
            (
                "two reasons, one of several machines",
                vec![
                    machine("c", "NotReady", ""),
                    machine("a", "NotReady", "no address"),
                    machine("b", "Failed", "no quota"),
                ],
                "Failed,NotReady",
                "3 of 3 machines are not ready\nMachine b: Failed: no quota\nMachine a: NotReady: no address\n\
                 Machine c: NotReady",
            ),
            (
                "no reason",
                vec![machine("a", "", "")],
                "WaitingForAvailable",
                "1 of 1 machines are not ready\nMachine a: WaitingForAvailable",
            ),
        ] {
            let found = of(&machines).unwrap();
            assert_eq!(
                (found.reason.as_str(), found.message.as_str()),
                (reason, message),
                "{name}"
            );
        }
        assert_eq!(of(&[fixtures::machine("a")]), None);
    }

    #[test]
    fn long_reports_are_truncated_at_each_level() {
        let alike: Vec<_> = (0..99)
            .map(|number| machine(&format!("m{number:02}"), "NotReady", "it does not start"))
            .collect();
        let found = of(&alike).unwrap();
        assert!(found.message.ends_with(MORE_OF_REASON), "{found:?}");
        let first = "99 of 99 machines are not ready\n";
        assert_eq!(found.message.len(), first.len() + LONGEST_OF_REASON);

        let different: Vec<_> = (0..99)
            .map(|number| {
                machine(
                    "a",
                    &format!("QuiteALongReason{number:02}"),
                    &"ü".repeat(99),
                )
            })
            .collect();
        let found = of(&different).unwrap();
        assert!(found.message.ends_with(MORE), "{found:?}");
        assert!(found.message.len() <= LONGEST_MESSAGE, "{found:?}");
        assert!(found.reason.ends_with(MORE_REASONS), "{found:?}");
        assert!(found.reason.len() <= LONGEST_REASON, "{found:?}");
    }
}
