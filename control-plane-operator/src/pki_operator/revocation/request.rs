//! A CertificateRevocationRequest and changes of its status. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};

use super::{CLASS_UNKNOWN, TIMEOUT};

/// A revocation request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in super::super) struct Request {
    pub(in super::super) name: String,
    pub(in super::super) uid: String,
    pub(in super::super) generation: Option<i64>,
    /// As it is written, because stored objects may have classes of another version.
    pub(in super::super) class: String,
    pub(in super::super) timestamp: Option<Timestamp>,
    pub(in super::super) previous: Option<String>,
    pub(in super::super) conditions: Vec<Condition>,
}

/// A condition to set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Set {
    pub(in super::super) type_: &'static str,
    pub(in super::super) status: bool,
    pub(in super::super) reason: &'static str,
    pub(in super::super) message: String,
}

/// A change of a request's status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in super::super) struct Change {
    pub(in super::super) timestamp: Option<Timestamp>,
    pub(in super::super) previous: Option<String>,
    pub(in super::super) conditions: Vec<Set>,
}

// === impl Set ===

impl Set {
    /// Whether a user should look at it.
    pub(in super::super) fn is_problem(&self) -> bool {
        [CLASS_UNKNOWN, TIMEOUT].contains(&self.reason)
    }
}

// === impl Request ===

impl Request {
    pub(super) fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions
            .iter()
            .find(|condition| condition.type_ == type_)
    }

    pub(super) fn is_true(&self, type_: &str) -> bool {
        self.condition(type_)
            .is_some_and(|condition| condition.status == "True")
    }

    /// The request after a change.
    pub(in super::super) fn changed(&self, change: &Change, now: Timestamp) -> Self {
        let mut request = self.clone();
        request.timestamp = change.timestamp.or(request.timestamp);
        request.previous = change.previous.clone().or(request.previous);
        for set in &change.conditions {
            let status = if set.status { "True" } else { "False" };
            let found = request.condition(set.type_);
            let since = found
                .filter(|found| found.status == status)
                .map(|found| found.last_transition_time.clone());
            let condition = Condition {
                type_: set.type_.to_owned(),
                status: status.to_owned(),
                reason: set.reason.to_owned(),
                message: set.message.clone(),
                observed_generation: self.generation,
                last_transition_time: since.unwrap_or(Time(now)),
            };
            request.conditions.retain(|other| other.type_ != set.type_);
            request.conditions.push(condition);
        }
        request
    }

    /// The `status` of the object.
    pub(in super::super) fn status(&self) -> Value {
        let mut status = json!({ "conditions": self.conditions });
        if let Some(timestamp) = self.timestamp {
            status["revocationTimestamp"] = json!(Time(timestamp));
        }
        if let Some(previous) = &self.previous {
            status["previousSigner"] = json!({ "name": previous });
        }
        status
    }

    /// Parses an object.
    pub(in super::super) fn parse(object: &kube::api::DynamicObject) -> Option<Self> {
        let field = |value: &Value| value.as_str().map(str::to_owned);
        let status = &object.data["status"];
        let timestamp = serde_json::from_value(status["revocationTimestamp"].clone());
        let timestamp: Option<Time> = timestamp.ok()?;
        let conditions = status["conditions"].clone();
        let conditions: Option<Vec<Condition>> = serde_json::from_value(conditions).ok()?;
        Some(Self {
            name: object.metadata.name.clone()?,
            uid: object.metadata.uid.clone()?,
            generation: object.metadata.generation,
            class: field(&object.data["spec"]["signerClass"]).unwrap_or_default(),
            timestamp: timestamp.map(|time| time.0),
            previous: field(&status["previousSigner"]["name"]),
            conditions: conditions.unwrap_or_default(),
        })
    }
}
