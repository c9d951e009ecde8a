//! Conditions of objects. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// The conditions with one replaced or added. Its transition time is that of the former one with the same status.
pub fn with(conditions: &[Condition], mut condition: Condition) -> Vec<Condition> {
    let mut all = conditions.to_vec();
    match all.iter_mut().find(|it| it.type_ == condition.type_) {
        Some(before) => {
            if before.status == condition.status {
                condition.last_transition_time = before.last_transition_time.clone();
            }
            *before = condition;
        }
        None => all.push(condition),
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn condition(type_: &str, status: &str, message: &str, second: u8) -> Condition {
        serde_json::from_value(json!({
            "type": type_, "status": status, "reason": "r", "message": message,
            "lastTransitionTime": format!("2030-01-01T00:00:{second:02}Z"),
        }))
        .unwrap()
    }

    #[test]
    fn the_transition_time_changes_with_the_status_only() {
        let before = [
            condition("a", "True", "", 1),
            condition("b", "False", "", 2),
        ];
        for (new, expected) in [
            (
                condition("b", "False", "new", 9),
                condition("b", "False", "new", 2),
            ),
            (condition("b", "True", "", 9), condition("b", "True", "", 9)),
            (condition("c", "True", "", 9), condition("c", "True", "", 9)),
        ] {
            let after = with(&before, new);
            assert_eq!(
                after.iter().find(|it| it.type_ == expected.type_),
                Some(&expected)
            );
            assert_eq!(after.first(), before.first());
        }
        assert_eq!(with(&before, condition("a", "True", "", 9)), before);
    }
}
