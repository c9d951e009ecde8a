//! The password of the user `kubeadmin`: made once, and only where no identity provider is configured.

use control_plane_component::Context;
use control_plane_component::render::{Identity, adopt, hashed};
use serde_json::{Value, json};

/// The Secret that holds it.
pub(crate) const SECRET: &str = "kubeadmin-password";
/// Its key.
const KEY: &str = "password";
/// Characters of it: none that looks like another.
const ALPHABET: &[u8; 56] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz";
/// Groups of characters, and characters of each.
const GROUPS: (usize, usize) = (4, 5);

/// What has to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing.
    Nothing,
    /// There has to be one.
    Make,
    /// It is of no use any more.
    Delete(Identity),
}

/// Whether there is to be such a user: not where people log in elsewhere, or by providers of the user's choice.
fn is_wanted(context: &Context<'_>) -> bool {
    let configuration = context.spec().configuration.as_ref();
    let chosen = configuration.and_then(|configuration| configuration.oauth.as_ref());
    context.is_oauth_enabled() && chosen.is_none_or(|oauth| oauth.identity_providers.is_empty())
}

/// Whether a password is there.
fn is_there(context: &Context<'_>) -> bool {
    context.objects.secret_value(SECRET, KEY).is_some()
}

/// What has to be done about the password.
pub(crate) fn due(context: &Context<'_>) -> Due {
    match (is_wanted(context), is_there(context)) {
        (true, false) => Due::Make,
        (false, true) => Due::Delete(Identity {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            name: SECRET.to_owned(),
        }),
        (true, true) | (false, false) => Due::Nothing,
    }
}

/// Where the password is, for the status.
pub(crate) fn told(context: &Context<'_>) -> Option<Value> {
    (is_wanted(context) && is_there(context)).then(|| json!({ "name": SECRET }))
}

/// The Secret with a new password. `None` if the system gives no random bytes.
pub(crate) fn made(context: &Context<'_>) -> Option<Value> {
    let password = password(&mut |bytes| {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        provider.secure_random.fill(bytes).is_ok()
    })?;
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

/// A password of what `random` fills in. Bytes that would make some characters likelier are passed over.
fn password(random: &mut impl FnMut(&mut [u8]) -> bool) -> Option<String> {
    let (groups, length) = GROUPS;
    let fair = u8::MAX - u8::MAX % u8::try_from(ALPHABET.len()).unwrap_or(1);
    let mut characters = Vec::with_capacity(groups * length);
    while characters.len() < groups * length {
        let mut bytes = [0; 32];
        if !random(&mut bytes) {
            return None;
        }
        let kept = bytes.into_iter().filter(|byte| *byte < fair);
        characters
            .extend(kept.map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])));
    }
    let groups: Vec<String> = characters
        .chunks_exact(length)
        .take(groups)
        .map(|group| group.iter().collect())
        .collect();
    Some(groups.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_plane_component::facts::Infra;
    use control_plane_component::settings::Settings;
    use control_plane_component::{Objects, Predicates, Release};

    #[test]
    fn a_password_has_four_groups_and_no_character_is_likelier() {
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
    fn without_random_bytes_there_is_no_password() {
        assert_eq!(password(&mut |_| false), None);
    }

    /// What is due for a configuration, without a password and with one, and the status with one.
    fn of(configuration: Value) -> (Due, Due, Option<Value>) {
        let text =
            include_str!("../../control-plane-component/tests/data/base/hosted-control-plane.yaml");
        let mut hcp: api::hypershift::v1beta1::HostedControlPlane =
            serde_saphyr::from_str(text).unwrap();
        hcp.spec.configuration = serde_json::from_value(configuration).unwrap();
        let (release, infra, settings) =
            (Release::default(), Infra::default(), Settings::new("own"));
        let mut objects = Objects::default();
        let judge = |objects: &Objects| {
            let context = Context {
                hcp: &hcp,
                release: &release,
                user_release: &release,
                infra: &infra,
                objects,
                settings: &settings,
                predicates: Predicates::Asked,
            };
            (due(&context), told(&context), made(&context))
        };
        let (without, untold, secret) = judge(&objects);
        assert_eq!(untold, None);
        objects.insert(secret.unwrap());
        let (with, told, _) = judge(&objects);
        (without, with, told)
    }

    #[test]
    fn there_is_a_password_only_where_nobody_has_said_how_users_log_in() {
        let (without, with, told) = of(json!({}));
        assert_eq!((without, with), (Due::Make, Due::Nothing));
        assert_eq!(told, Some(json!({ "name": "kubeadmin-password" })));
        let provider = json!({
            "name": "file", "type": "HTPasswd", "mappingMethod": "claim",
            "htpasswd": { "fileData": { "name": "users" } },
        });
        for chosen in [
            json!({ "oauth": { "identityProviders": [provider], "tokenConfig": {}, "templates": {} } }),
            json!({ "authentication": { "type": "OIDC" } }),
        ] {
            let (without, with, told) = of(chosen);
            assert_eq!(without, Due::Nothing);
            assert!(matches!(with, Due::Delete(_)));
            assert_eq!(told, None);
        }
    }
}
