//! Changes of policies: who has which role. What others have stays as it is. Pure.

use serde_json::{Value, json};

use super::identity::account_member;

/// Gives members a role, without a condition. Returns whether that changes the policy.
pub(super) fn add(policy: &mut Value, role: &str, members: &[String]) -> bool {
    if !policy["bindings"].is_array() {
        policy["bindings"] = json!([]);
    }
    let Some(bindings) = policy["bindings"].as_array_mut() else {
        return false;
    };
    let has = |member: &str| {
        bindings
            .iter()
            .any(|it| is_of(it, role) && has_member(it, member))
    };
    let missing: Vec<_> = members
        .iter()
        .filter(|member| !has(member))
        .map(|it| json!(it))
        .collect();
    if missing.is_empty() {
        return false;
    }
    let binding = bindings.iter_mut().find(|it| is_of(it, role));
    let existing = binding.and_then(|it| it.get_mut("members")?.as_array_mut());
    match existing {
        Some(existing) => existing.extend(missing),
        None => bindings.push(json!({ "role": role, "members": missing })),
    }
    true
}

/// Takes all roles from service accounts, also from deleted ones of these names. Returns whether that changes the policy.
pub(super) fn remove(policy: &mut Value, emails: &[String]) -> bool {
    let bindings = policy.get_mut("bindings").and_then(Value::as_array_mut);
    let Some(bindings) = bindings else {
        return false;
    };
    let is_ours = |member: &Value| {
        let member = member.as_str().unwrap_or_default();
        emails.iter().any(|email| is_account(member, email))
    };
    let mut changed = false;
    for members in bindings
        .iter_mut()
        .filter_map(|it| it.get_mut("members")?.as_array_mut())
    {
        let before = members.len();
        members.retain(|member| !is_ours(member));
        changed |= members.len() != before;
    }
    bindings.retain(|it| {
        it["members"]
            .as_array()
            .is_none_or(|members| !members.is_empty())
    });
    changed
}

/// Whether a binding without a condition is of a role.
fn is_of(binding: &Value, role: &str) -> bool {
    binding["role"].as_str() == Some(role) && binding["condition"].is_null()
}

fn has_member(binding: &Value, member: &str) -> bool {
    let members = binding["members"].as_array();
    members.is_some_and(|members| members.iter().any(|it| it.as_str() == Some(member)))
}

/// Whether a member is a service account, or was it before it was deleted.
fn is_account(member: &str, email: &str) -> bool {
    let live = account_member(email);
    let deleted = format!("deleted:{live}?uid=");
    member == live || member.starts_with(&deleted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "a-x1-b@project-1.iam.gserviceaccount.com";

    fn members(members: &[&str]) -> Vec<String> {
        members.iter().map(|&member| member.to_owned()).collect()
    }

    #[test]
    fn members_are_added_beside_others() {
        let condition = json!({ "expression": "false" });
        let conditional =
            json!({ "role": "roles/r", "members": ["user:c"], "condition": condition });
        for (before, changed, after) in [
            (
                json!([]),
                true,
                json!([{ "role": "roles/r", "members": ["user:a", "user:b"] }]),
            ),
            (
                json!([{ "role": "roles/r", "members": ["user:z", "user:b"] }]),
                true,
                json!([{ "role": "roles/r", "members": ["user:z", "user:b", "user:a"] }]),
            ),
            (
                json!([conditional]),
                true,
                json!([conditional, { "role": "roles/r", "members": ["user:a", "user:b"] }]),
            ),
            (
                json!([{ "role": "roles/r", "members": ["user:a", "user:b"] }]),
                false,
                json!([{ "role": "roles/r", "members": ["user:a", "user:b"] }]),
            ),
        ] {
            let mut policy = json!({ "etag": "e", "bindings": before });
            let added = add(&mut policy, "roles/r", &members(&["user:a", "user:b"]));
            assert_eq!(added, changed, "{before}");
            assert_eq!(policy, json!({ "etag": "e", "bindings": after }));
        }
        // A policy that nothing was bound in has no bindings.
        let mut policy = json!({ "etag": "e" });
        assert!(add(&mut policy, "roles/r", &members(&["user:a"])));
        assert_eq!(policy["bindings"][0]["members"], json!(["user:a"]));
    }

    #[test]
    fn only_our_members_are_removed() {
        let live = account_member(OURS);
        let deleted = format!("deleted:{live}?uid=1");
        let other = account_member(&format!("x{OURS}"));
        let mut policy = json!({ "bindings": [
            { "role": "roles/r", "members": [live, other] },
            { "role": "roles/s", "members": [deleted] },
            { "role": "roles/t", "members": ["user:a"] },
        ] });
        let emails = [OURS.to_owned()];
        assert!(remove(&mut policy, &emails));
        let expected = json!({ "bindings": [
            { "role": "roles/r", "members": [other] },
            { "role": "roles/t", "members": ["user:a"] },
        ] });
        assert_eq!(policy, expected);
        assert!(!remove(&mut policy, &emails));
        assert!(!remove(&mut json!({}), &emails));
    }
}
