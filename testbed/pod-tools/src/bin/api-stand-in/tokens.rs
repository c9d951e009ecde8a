//! Token reviews: whose an OAuth access token is.
//!
//! A token is `sha256~` and a secret; the name of its object is `sha256~` and the unpadded URL-safe Base64 of the
//! secret's SHA-256.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::groups::{Kind, OAUTH, Program, USER};
use crate::selector::Selector;
use crate::store::{Place, Store};

const PREFIX: &str = "sha256~";
/// The groups of all users with a token.
const GROUPS: [&str; 2] = ["system:authenticated:oauth", "system:authenticated"];

/// Answers a `TokenReview`.
pub(crate) fn review(store: &Store, review: &Value, now: Timestamp) -> Value {
    let token = review["spec"]["token"].as_str().unwrap_or_default();
    let status = match user(store, token, now) {
        Some(user) => json!({
            "authenticated": true,
            "user": user,
            "audiences": review["spec"]["audiences"],
        }),
        None => json!({ "authenticated": false }),
    };
    json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "metadata": {},
        "spec": review["spec"],
        "status": status,
    })
}

fn user(store: &Store, token: &str, now: Timestamp) -> Option<Value> {
    let token = object(store, OAUTH, "oauthaccesstokens", &name(token)?)?;
    let user = object(store, USER, "users", token["userName"].as_str()?)?;
    let is_same = user["metadata"]["uid"] == token["userUID"];
    if !is_same || is_expired(&token, now) {
        return None;
    }
    let name = &user["metadata"]["name"];
    let listed = store.list(kind(USER, "groups")?, "", &Selector::default());
    let is_member = |group: &Value| {
        let users = group["users"].as_array();
        users.is_some_and(|users| users.contains(name))
    };
    let groups = listed.iter().filter(|group| is_member(group));
    let groups = groups.map(|group| group["metadata"]["name"].clone());
    let groups: Vec<Value> = groups.chain(GROUPS.map(Value::from)).collect();
    Some(json!({
        "username": name,
        "uid": user["metadata"]["uid"],
        "groups": groups,
        "extra": { "scopes.authorization.openshift.io": token["scopes"] },
    }))
}

/// The name of a token's object.
fn name(token: &str) -> Option<String> {
    let secret = token.strip_prefix(PREFIX)?;
    let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(secret));
    Some(format!("{PREFIX}{digest}"))
}

fn is_expired(token: &Value, now: Timestamp) -> bool {
    let seconds = token["expiresIn"].as_i64().unwrap_or_default();
    let created = token["metadata"]["creationTimestamp"].as_str();
    let created: Option<Timestamp> = created.and_then(|time| time.parse().ok());
    let Some(created) = created else {
        return true;
    };
    seconds > 0 && now.duration_since(created) > SignedDuration::from_secs(seconds)
}

fn object(store: &Store, group: &str, plural: &str, name: &str) -> Option<Value> {
    let found = store.get(&Place::new(kind(group, plural)?, "", name));
    found.ok().map(|found| (*found).clone())
}

fn kind(group: &str, plural: &str) -> Option<&'static Kind> {
    let kinds = Program::OAuth.group(group)?.kinds;
    kinds.iter().find(|kind| kind.plural == plural)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Stamp;

    fn store(expires_in: i64, user_uid: &str) -> Store {
        let mut store = Store::new(0);
        let mut add = |group: &str, plural: &str, mut object: Value| {
            let kind = kind(group, plural).unwrap();
            object["apiVersion"] = json!(kind.api_version());
            object["kind"] = json!(kind.kind);
            let stamp = Stamp {
                time: "2026-01-01T00:00:00Z".to_owned(),
                uid: "user-uid".to_owned(),
            };
            store.create(kind, "", object, &stamp).unwrap();
        };
        add(USER, "users", json!({ "metadata": { "name": "ann" } }));
        add(
            USER,
            "groups",
            json!({ "metadata": { "name": "team" }, "users": ["ann"] }),
        );
        add(
            USER,
            "groups",
            json!({ "metadata": { "name": "others" }, "users": ["bob"] }),
        );
        // The digest of "secret".
        let name = "sha256~K7gNU3sdo-OL0wNhqoVWhr3g6s1xYv72ol_pe_Unols";
        add(
            OAUTH,
            "oauthaccesstokens",
            json!({
                "metadata": { "name": name }, "userName": "ann", "userUID": user_uid,
                "expiresIn": expires_in, "scopes": ["user:full"],
            }),
        );
        store
    }

    #[test]
    fn tokens_authenticate_their_users_until_they_expire() {
        for (token, uid, expires_in, at, expected) in [
            (
                "sha256~secret",
                "user-uid",
                60,
                "2026-01-01T00:00:30Z",
                true,
            ),
            ("sha256~secret", "user-uid", 0, "2027-01-01T00:00:00Z", true),
            (
                "sha256~secret",
                "user-uid",
                60,
                "2026-01-01T00:01:01Z",
                false,
            ),
            // A user of the same name that was created later.
            (
                "sha256~secret",
                "another",
                60,
                "2026-01-01T00:00:30Z",
                false,
            ),
            (
                "sha256~other",
                "user-uid",
                60,
                "2026-01-01T00:00:30Z",
                false,
            ),
            ("secret", "user-uid", 60, "2026-01-01T00:00:30Z", false),
            ("", "user-uid", 60, "2026-01-01T00:00:30Z", false),
        ] {
            let request = json!({ "spec": { "token": token, "audiences": ["a"] } });
            let answer = review(&store(expires_in, uid), &request, at.parse().unwrap());
            assert_eq!(answer["status"]["authenticated"], expected, "{token} {at}");
            if expected {
                let user = &answer["status"]["user"];
                assert_eq!(user["username"], "ann");
                assert_eq!(user["groups"][0], "team");
                assert_eq!(user["groups"].as_array().unwrap().len(), 3);
            }
        }
    }
}
