//! When the endpoint of a private link is given up: otherwise it would hold the cluster for ever. What remains of it in the
//! account of the cluster is the user's to delete.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// How long the control-plane-operator has for the deletion of an endpoint.
const TIMEOUT: Duration = Duration::from_mins(10);

/// Whether the endpoint of a private link is given up: AWS does not accept the tokens of the cluster, or the time is
/// over.
pub(super) fn is_given_up(link: &ObjectMeta, is_identity_invalid: bool, now: Timestamp) -> bool {
    let Some(since) = &link.deletion_timestamp else {
        return false;
    };
    let waited = Duration::try_from(now.duration_since(since.0)).unwrap_or_default();
    is_identity_invalid || waited > TIMEOUT
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn endpoints_are_given_up_without_credentials_or_after_a_while() {
        let deleted: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        for (since, is_invalid, now, expected) in [
            (None, true, "2030-01-01T00:20:00Z", false),
            (Some(deleted), true, "2030-01-01T00:00:01Z", true),
            (Some(deleted), false, "2030-01-01T00:09:59Z", false),
            (Some(deleted), false, "2030-01-01T00:10:01Z", true),
            (Some(deleted), false, "2029-12-31T00:00:00Z", false),
        ] {
            let link = ObjectMeta {
                deletion_timestamp: since.map(Time),
                ..ObjectMeta::default()
            };
            let found = is_given_up(&link, is_invalid, now.parse().unwrap());
            assert_eq!(found, expected, "{since:?} {is_invalid} {now}");
        }
    }
}
