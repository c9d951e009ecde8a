//! The calls, sent to Google Cloud.

use std::time::Duration;

use support::google_cloud::Credentials;
use support::rest::{Calls, Client, Error, Request, Response};

/// The project whose quota requests of users count against.
const QUOTA_PROJECT: &str = "x-goog-user-project";

/// Google Cloud.
#[derive(Debug)]
pub(crate) struct GoogleCloud {
    client: Client<Credentials>,
    quota_project: Option<String>,
}

/// A client with the credentials of the environment.
pub(crate) fn connect() -> anyhow::Result<GoogleCloud> {
    let credentials = Credentials::find(&variable)?;
    let quota_project = credentials.quota_project().map(str::to_owned);
    Ok(GoogleCloud {
        client: Client::new(credentials),
        quota_project,
    })
}

impl Calls for GoogleCloud {
    async fn call(&self, request: &Request) -> Result<Response, Error> {
        match &self.quota_project {
            Some(project) => {
                let request = request.clone().with_header(QUOTA_PROJECT, project);
                self.client.call(&request).await
            }
            None => self.client.call(request).await,
        }
    }

    async fn pause(&self, time: Duration) {
        self.client.pause(time).await;
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
