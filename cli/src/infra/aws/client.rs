//! The calls, sent to AWS.

use std::time::Duration;

use http::Method;
use support::aws::{self, Client, Element, Error};

use super::call::{Call, Calls, Service};
use super::{ram, rest};

/// AWS, in one region.
#[derive(Debug)]
pub(crate) struct Aws(Client);

// === impl Aws ===

impl Aws {
    pub(super) fn new(client: Client) -> Self {
        Self(client)
    }
}

impl Calls for Aws {
    async fn call(&self, call: &Call) -> Result<Element, Error> {
        let service = facts(call.service);
        let repeatable = call.is_repeatable();
        let document = if let Some(rest) = rest::request(call) {
            let sent = self.0.rest(&service, call.action, &rest, repeatable);
            let document = sent.await?;
            if call.action == "GetObject" {
                // It is no XML.
                return Ok(Element::leaf("Object", &document));
            }
            let is_written = [Method::PUT, Method::DELETE].contains(&rest.method);
            if call.service == Service::S3 && is_written {
                // Nothing is read of these, and services like S3 respond with different texts.
                return Ok(Element::default());
            }
            document
        } else {
            let parameters = &call.parameters;
            let sent = self.0.query(&service, call.action, parameters, repeatable);
            sent.await?
        };
        if document.trim().is_empty() {
            return Ok(Element::default());
        }
        let (root, problem) = match call.service {
            Service::Ram => (ram::response(&document), "it is no JSON"),
            _ => (Element::parse(&document), "it is no XML"),
        };
        root.ok_or_else(|| Error::Response {
            what: call.action.to_owned(),
            problem: problem.to_owned(),
        })
    }

    async fn pause(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

fn facts(service: Service) -> aws::Service {
    match service {
        Service::Ec2 => aws::EC2,
        Service::Elb => aws::ELB,
        Service::ElbV2 => aws::ELB_V2,
        Service::Iam => aws::IAM,
        Service::Ram => aws::RAM,
        Service::Route53 => aws::ROUTE53,
        Service::S3 => aws::S3,
        Service::Sts => aws::STS,
    }
}
