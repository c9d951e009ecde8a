//! What the tuning operator reports about a pool's performance profile, as conditions of the pool.

use api::conditions::{PoolCondition, Status};
use serde_json::Value;

use super::REPORT_KEY;
use crate::node_pool::conditions::Conditions;
use crate::node_pool::config::{Content, Source};
use crate::node_pool::manifest::documents;

/// Conditions of a performance profile, and those of the pool.
const CONDITIONS: [(&str, PoolCondition); 4] = [
    ("Available", PoolCondition::PerformanceAvailable),
    ("Progressing", PoolCondition::PerformanceProgressing),
    ("Upgradeable", PoolCondition::PerformanceUpgradeable),
    ("Degraded", PoolCondition::PerformanceDegraded),
];
/// The reason of a condition that was reported without one: a condition of a pool needs one.
const REPORTED: &str = "Reported";
/// The longest reason that the API takes.
const LONGEST_REASON: usize = 1024;

/// The pool has no performance profile.
pub(crate) fn clear(conditions: &mut Conditions) {
    for (_, about) in CONDITIONS {
        conditions.clear(about);
    }
}

/// Sets the conditions as they are reported. Without a report they stay: the tuning operator has not got to it yet.
pub(crate) fn report(reports: &[Source], conditions: &mut Conditions) {
    let read = match reports {
        [] => return,
        [report] => read(report),
        several => {
            let names: Vec<_> = several.iter().map(|it| it.name.as_str()).collect();
            Err(format!(
                "ConfigMaps {} of the control plane all report the state of the performance profile: delete those that \
                 the node tuning operator does not update",
                names.join(", ")
            ))
        }
    };
    for (word, about) in CONDITIONS {
        match &read {
            Err(message) => {
                conditions.set(about, Status::Unknown, "StatusUnknown", message.as_str());
            }
            Ok(reported) => match reported.iter().find(|it| it["type"] == word) {
                Some(found) => set(found, about, conditions),
                None => conditions.clear(about),
            },
        }
    }
}

fn set(found: &Value, about: PoolCondition, conditions: &mut Conditions) {
    let text = |field: &str| found[field].as_str().unwrap_or_default();
    let reason: String = text("reason").chars().take(LONGEST_REASON).collect();
    let reason = if reason.is_empty() {
        REPORTED.to_owned()
    } else {
        reason
    };
    let status = Status::read(text("status"));
    conditions.set(about, status, reason, text("message"));
}

/// The reported conditions.
fn read(report: &Source) -> Result<Vec<Value>, String> {
    let Source { name, content } = report;
    let text = match content {
        Content::Missing | Content::Empty => {
            return Err(format!(
                "Waiting for the node tuning operator: its ConfigMap {name} has no key {REPORT_KEY}"
            ));
        }
        Content::Text(text) => text,
    };
    let documents = documents(text).map_err(|error| {
        format!(
            "ConfigMap {name}, which the node tuning operator has written, is not readable: {error}"
        )
    })?;
    let status = documents.first().map(|(_, status)| status);
    let conditions = status.and_then(|it| it["conditions"].as_array());
    Ok(conditions.cloned().unwrap_or_default())
}
