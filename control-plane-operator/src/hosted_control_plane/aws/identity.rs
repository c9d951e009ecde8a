//! Whether AWS accepts tokens of the hosted cluster: the role of the control-plane-operator is assumed, and used.

use std::sync::Arc;

use api::conditions::ClusterCondition as Type;
use api::hypershift::v1beta1::HostedControlPlane;
use support::aws::{Client, EC2};

use super::access::{Access, NoAccess, Role};
use crate::hosted_control_plane::status::Evaluation;

/// What was found.
#[derive(Debug)]
pub(super) enum Found {
    /// The API server does not issue tokens yet.
    NotYet,
    /// The role is assumed, and used by this client.
    Works(Arc<Client>),
    /// No credentials.
    NoAccess(NoAccess),
    /// EC2 refuses a request, with this code.
    Refused(String),
    /// EC2 cannot be used.
    Unavailable,
}

/// Asks.
pub(super) async fn ask(hcp: &HostedControlPlane, access: &mut Access) -> Found {
    let Some(aws) = &hcp.spec.platform.aws else {
        return Found::NotYet;
    };
    let client = match access.client(&Role::of_operator(aws), None).await {
        Ok(client) => client,
        Err(none) => return Found::NoAccess(none),
    };
    match client.query(&EC2, "DescribeVpcEndpoints", &[], true).await {
        Ok(_) => Found::Works(client),
        Err(error) if error.code().is_empty() => Found::Unavailable,
        Err(error) => Found::Refused(error.code().to_owned()),
    }
}

// === impl Found ===

impl Found {
    pub(super) fn is_good(&self) -> bool {
        matches!(self, Self::Works(_))
    }

    /// The condition.
    pub(super) fn evaluation(&self) -> Evaluation {
        let about = Type::ValidAwsIdentityProvider;
        match self {
            Self::Works(_) => Evaluation::yes(about),
            Self::NotYet => {
                Evaluation::unknown(about, "Waiting for the API server, which issues the tokens")
            }
            Self::NoAccess(NoAccess::NoKubeconfig) => {
                Evaluation::unknown(about, "Waiting for the kubeconfig of the API server")
            }
            Self::NoAccess(NoAccess::NoToken(problem)) => Evaluation::unknown(
                about,
                format!("failed to get a token from the API server: {problem}"),
            ),
            Self::NoAccess(NoAccess::Refused(code)) => Evaluation::no(
                about,
                "InvalidIdentityProvider",
                format!(
                    "AWS does not accept tokens of the cluster for the role in \
                     spec.platform.aws.rolesRef.controlPlaneOperatorARN ({code}): check its trust policy, and the identity \
                     provider and OIDC documents of spec.issuerURL"
                ),
            ),
            Self::NoAccess(NoAccess::Unavailable(problem)) => {
                Evaluation::unknown(about, problem.as_str())
            }
            Self::Refused(code) => Evaluation {
                reason: "AWSError".to_owned(),
                ..Evaluation::unknown(
                    about,
                    format!(
                        "EC2 refuses DescribeVpcEndpoints ({code}): check the permissions of the role in \
                         spec.platform.aws.rolesRef.controlPlaneOperatorARN"
                    ),
                )
            },
            Self::Unavailable => Evaluation::unknown(about, "EC2 cannot be used"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refused_tokens_make_the_identity_invalid() {
        let none = Found::NoAccess;
        for (found, status, reason) in [
            (Found::NotYet, "Unknown", "StatusUnknown"),
            (none(NoAccess::NoKubeconfig), "Unknown", "StatusUnknown"),
            (
                none(NoAccess::NoToken("no".to_owned())),
                "Unknown",
                "StatusUnknown",
            ),
            (
                none(NoAccess::Refused("InvalidIdentityToken".to_owned())),
                "False",
                "InvalidIdentityProvider",
            ),
            (
                none(NoAccess::Unavailable("no".to_owned())),
                "Unknown",
                "StatusUnknown",
            ),
            (
                Found::Refused("UnauthorizedOperation".to_owned()),
                "Unknown",
                "AWSError",
            ),
            (Found::Unavailable, "Unknown", "StatusUnknown"),
        ] {
            let evaluation = found.evaluation();
            assert_eq!(evaluation.status, status, "{found:?}");
            assert_eq!(evaluation.reason, reason, "{found:?}");
            assert!(!found.is_good(), "{found:?}");
        }
        let refused = none(NoAccess::Refused("InvalidIdentityToken".to_owned()));
        let message = refused.evaluation().message;
        assert!(message.contains("(InvalidIdentityToken)"), "{message}");
    }
}
