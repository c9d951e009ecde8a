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

/// The conditions with one that is for several others: `False` for the reason of the first one of them that is not `True`,
/// and `True` once all of them are. While one of them is missing and none is not `True`, it stays as it is.
pub fn with_summary(
    conditions: &[Condition],
    parts: &[&str],
    mut summary: Condition,
) -> Vec<Condition> {
    let found = |part: &&str| conditions.iter().find(|it| it.type_ == **part);
    let mut found_parts = parts.iter().filter_map(found);
    let failed = found_parts.find(|it| it.status != "True");
    if let Some(failed) = failed {
        "False".clone_into(&mut summary.status);
        summary.reason.clone_from(&failed.reason);
        summary.message.clone_from(&failed.message);
    } else if parts.iter().any(|part| found(part).is_none()) {
        return conditions.to_vec();
    }
    with(conditions, summary)
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

    #[test]
    fn a_summary_is_that_of_the_first_failed_part() {
        let (good, bad) = (
            condition("a", "True", "", 1),
            condition("b", "False", "no", 2),
        );
        let summary = || condition("all", "True", "well", 3);
        let of = |found: &[Condition], status: &str| {
            let all = with_summary(found, &["a", "b"], summary());
            let all = all.into_iter().find(|it| it.type_ == "all");
            all.filter(|it| it.status == status).map(|it| it.message)
        };
        assert_eq!(of(&[], "True"), None);
        assert_eq!(of(std::slice::from_ref(&good), "True"), None);
        let both = [good.clone(), bad];
        assert_eq!(of(&both, "False").as_deref(), Some("no"));
        let all = [good, condition("b", "True", "", 2)];
        assert_eq!(of(&all, "True").as_deref(), Some("well"));
    }
}
