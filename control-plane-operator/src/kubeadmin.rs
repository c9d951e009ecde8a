//! The password of the user `kubeadmin`: created once, and only if no identity provider is configured.

use control_plane_component::Context;
use control_plane_component::render::{Identity, adopt, hashed};
use serde_json::{Value, json};

use crate::random;

/// Name of the Secret.
pub(crate) const SECRET: &str = "kubeadmin-password";
/// Key in the Secret.
pub(crate) const KEY: &str = "password";
/// Annotation: hash of the password, of the Secret and of the pods of the OAuth server.
pub(crate) const HASH: &str = "hypershift.openshift.io/kubeadmin-secret-hash";
/// Characters of the password, without similar looking ones.
const ALPHABET: &[u8; 56] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz";
/// Number of groups, and characters per group.
const GROUPS: (usize, usize) = (4, 5);

/// What to do with the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PasswordStep {
    /// Nothing.
    Keep,
    /// Create the Secret.
    Create,
    /// Delete the Secret.
    Delete(Identity),
}

/// Whether the user is enabled: only with the OAuth server, and without identity providers.
fn is_required(context: &Context<'_>) -> bool {
    let configuration = context.spec().configuration.as_ref();
    let chosen = configuration.and_then(|configuration| configuration.oauth.as_ref());
    context.is_oauth_enabled() && chosen.is_none_or(|oauth| oauth.identity_providers.is_empty())
}

/// Whether the password exists.
fn exists(context: &Context<'_>) -> bool {
    context.objects.secret_value(SECRET, KEY).is_some()
}

/// Decides what to do with the password.
pub(crate) fn next_step(context: &Context<'_>) -> PasswordStep {
    match (is_required(context), exists(context)) {
        (true, false) => PasswordStep::Create,
        (false, true) => PasswordStep::Delete(Identity {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            name: SECRET.to_owned(),
        }),
        (true, true) | (false, false) => PasswordStep::Keep,
    }
}

/// Returns the reference to the Secret, for the status.
pub(crate) fn status(context: &Context<'_>) -> Option<Value> {
    (is_required(context) && exists(context)).then(|| json!({ "name": SECRET }))
}

/// Creates the Secret with a new password. `None` if no random bytes are available.
pub(crate) fn new_secret(context: &Context<'_>) -> Option<Value> {
    let password = password(&mut random::fill)?;
    let mut secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": SECRET },
        "type": "Opaque",
        "data": { KEY: crate::components::kubeconfig::base64(password.as_bytes()) },
    });
    adopt(&mut secret, context);
    Some(hashed(secret))
}

/// Generates a password of groups that are joined by dashes.
fn password(random: &mut impl FnMut(&mut [u8]) -> bool) -> Option<String> {
    let (groups, length) = GROUPS;
    let text = random::text(ALPHABET, groups * length, random)?;
    let characters: Vec<_> = text.chars().collect();
    let groups = characters.chunks(length);
    let groups: Vec<String> = groups.map(|group| group.iter().collect()).collect();
    Some(groups.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_plane_component::facts::Infra;
    use control_plane_component::settings::Settings;
    use control_plane_component::{Objects, Predicates, Release};

    #[test]
    fn passwords_have_four_groups_and_are_unbiased() {
        let mut next = 0_u8;
        let mut counted = |bytes: &mut [u8]| {
            for byte in bytes {
                *byte = next;
                next = next.wrapping_add(1);
            }
            true
        };
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..56 {
            let password = password(&mut counted).unwrap();
            let groups: Vec<_> = password.split('-').map(str::len).collect();
            assert_eq!(groups, [5, 5, 5, 5], "{password}");
            for letter in password.chars().filter(|it| *it != '-') {
                *seen.entry(letter).or_insert(0) += 1;
            }
        }
        assert_eq!(seen.len(), ALPHABET.len());
        assert_eq!(
            ALPHABET
                .iter()
                .collect::<std::collections::BTreeSet<_>>()
                .len(),
            56
        );
    }

    #[test]
    fn passwords_require_random_bytes() {
        assert_eq!(password(&mut |_| false), None);
    }

    /// Returns the steps for a configuration without and with a password, and the status.
    fn of(configuration: Value) -> (PasswordStep, PasswordStep, Option<Value>) {
        let text =
            include_str!("../../control-plane-component/tests/data/base/hosted-control-plane.yaml");
        let mut hcp: api::hypershift::v1beta1::HostedControlPlane =
            serde_saphyr::from_str(text).unwrap();
        hcp.spec.configuration = serde_json::from_value(configuration).unwrap();
        let (release, infra, settings) =
            (Release::default(), Infra::default(), Settings::new("own"));
        let mut objects = Objects::default();
        let evaluate = |objects: &Objects| {
            let context = Context {
                hcp: &hcp,
                release: &release,
                user_release: &release,
                infra: &infra,
                objects,
                settings: &settings,
                predicates: Predicates::Evaluated,
            };
            (next_step(&context), status(&context), new_secret(&context))
        };
        let (without, no_status, secret) = evaluate(&objects);
        assert_eq!(no_status, None);
        objects.insert(secret.unwrap());
        let (with, status, _) = evaluate(&objects);
        (without, with, status)
    }

    #[test]
    fn password_exists_only_without_identity_providers() {
        let (without, with, status) = of(json!({}));
        assert_eq!((without, with), (PasswordStep::Create, PasswordStep::Keep));
        assert_eq!(status, Some(json!({ "name": "kubeadmin-password" })));
        let provider = json!({
            "name": "file", "type": "HTPasswd", "mappingMethod": "claim",
            "htpasswd": { "fileData": { "name": "users" } },
        });
        for chosen in [
            json!({ "oauth": { "identityProviders": [provider], "tokenConfig": {}, "templates": {} } }),
            json!({ "authentication": { "type": "OIDC" } }),
        ] {
            let (without, with, status) = of(chosen);
            assert_eq!(without, PasswordStep::Keep);
            assert!(matches!(with, PasswordStep::Delete(_)));
            assert_eq!(status, None);
        }
    }
}
