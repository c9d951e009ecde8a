//! A role of AWS that the operators assume with tokens of their service accounts.

use serde_json::{Value, json};

use crate::Usage;

/// Volume with a token of the operator; its directory, and its file.
const VOLUME: &str = "aws-token";
const DIRECTORY: &str = "/var/run/secrets/openshift/serviceaccount";
const TOKEN: &str = "token";
/// The audience that roles trust, and how long a token is valid, in seconds.
const AUDIENCE: &str = "openshift";
const LIFETIME: u32 = 3600;

/// The profile of a role, which `flag` names.
pub(super) fn profile(flag: &str, role: &str) -> anyhow::Result<String> {
    let is_arn = role.starts_with("arn:") && role.contains(":role/");
    if !is_arn || role.contains(char::is_whitespace) {
        let message = format!(
            "{flag} {role:?} is not the ARN of a role (for example arn:aws:iam::123456789012:role/name)"
        );
        return Err(Usage::new(&message).into());
    }
    Ok(format!(
        "[default]\nrole_arn = {role}\nweb_identity_token_file = {DIRECTORY}/{TOKEN}\n"
    ))
}

/// The volume with the token, and where the container of an operator has it. It is the same for all roles.
pub(super) fn token() -> (Value, Value) {
    let volume = json!({
        "name": VOLUME,
        "projected": { "sources": [{ "serviceAccountToken": {
            "audience": AUDIENCE,
            "expirationSeconds": LIFETIME,
            "path": TOKEN,
        } }] },
    });
    let mount = json!({ "name": VOLUME, "mountPath": DIRECTORY, "readOnly": true });
    (volume, mount)
}
