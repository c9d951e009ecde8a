//! The calls, sent to Azure.

use std::time::Duration;

use support::azure::{Endpoints, Source};
use support::rest::{Calls, Client, Error, Request, Response};

/// Azure Resource Manager and Microsoft Graph of a cloud.
#[derive(Debug)]
pub(crate) struct Azure {
    management: Client<Source>,
    graph: Client<Source>,
    endpoints: Endpoints,
}

// === impl Azure ===

impl Azure {
    /// `source` gives tokens for Azure Resource Manager.
    pub(super) fn new(source: Source, endpoints: Endpoints) -> Self {
        Self {
            graph: Client::new(source.for_scope(&endpoints.graph_scope())),
            management: Client::new(source),
            endpoints,
        }
    }

    /// The client for a host: responses name URLs to continue with, and no other host may get a token.
    fn client(&self, host: &str) -> Option<&Client<Source>> {
        [
            (self.endpoints.management, &self.management),
            (self.endpoints.graph, &self.graph),
        ]
        .into_iter()
        .find(|(endpoint, _)| is_host(host, endpoint))
        .map(|(_, client)| client)
    }
}

impl Calls for Azure {
    async fn call(&self, request: &Request) -> Result<Response, Error> {
        let is_encrypted = request.url.starts_with("https://");
        match self.client(request.host()).filter(|_| is_encrypted) {
            Some(client) => client.call(request).await,
            None => Err(Error::Response {
                what: request.what(),
                problem: "it names a URL that is none of this cloud's services".to_owned(),
            }),
        }
    }

    async fn pause(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// Whether a host is that of an endpoint, or one of its regions.
fn is_host(host: &str, endpoint: &str) -> bool {
    let expected = endpoint.trim_start_matches("https://");
    let host = host.strip_suffix(":443").unwrap_or(host);
    let Some(region) = host.strip_suffix(expected) else {
        return false;
    };
    let is_label = |label: &str| {
        label
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'-')
    };
    region.is_empty() || region.ends_with('.') && region.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_sent_to_services_of_the_cloud_only() {
        let endpoint = "https://management.azure.com";
        for (host, expected) in [
            ("management.azure.com", true),
            ("management.azure.com:443", true),
            ("westeurope.management.azure.com", true),
            ("evilmanagement.azure.com", false),
            ("management.azure.com.example.com", false),
            ("management.azure.com:8443", false),
            ("user@management.azure.com", false),
            ("user@westeurope.management.azure.com", false),
            ("example.com#.management.azure.com", false),
            ("management.azure.com@example.com", false),
            ("", false),
        ] {
            assert_eq!(is_host(host, endpoint), expected, "{host}");
        }
    }
}
