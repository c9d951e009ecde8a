//! Why a private link on Azure or Google Cloud is not as it is to be.

pub(super) use support::problem::{Problem, failed};

use crate::hosted_control_plane::tokens::NoToken;

/// What it means that there is no token for a cloud.
pub(super) fn no_token(reason: &'static str) -> impl Fn(NoToken) -> Problem + Copy {
    move |no_token| {
        let message = match no_token {
            NoToken::NoKubeconfig => {
                "waiting for the kubeconfig of the API server, which issues the tokens for the cloud"
                    .to_owned()
            }
            NoToken::Refused(problem) => {
                format!("failed to get a token for the cloud from the API server: {problem}")
            }
        };
        Problem::input(reason, message)
    }
}
