//! The workload of a component: one of four kinds.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

/// The workload of a component.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Workload {
    /// Interchangeable replicas.
    Deployment(Deployment),
    /// Replicas with stable names and storage.
    StatefulSet(StatefulSet),
    /// Runs to completion.
    Job(Job),
    /// Runs on a schedule.
    CronJob(CronJob),
}

// === impl Workload ===

impl Workload {
    /// Parses a manifest of one of the kinds.
    pub fn read(object: Value) -> Result<Self, serde_json::Error> {
        Ok(match object["kind"].as_str() {
            Some("StatefulSet") => Self::StatefulSet(serde_json::from_value(object)?),
            Some("Job") => Self::Job(serde_json::from_value(object)?),
            Some("CronJob") => Self::CronJob(serde_json::from_value(object)?),
            _ => Self::Deployment(serde_json::from_value(object)?),
        })
    }

    /// Its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Deployment(_) => "Deployment",
            Self::StatefulSet(_) => "StatefulSet",
            Self::Job(_) => "Job",
            Self::CronJob(_) => "CronJob",
        }
    }

    /// Its API group.
    pub fn group(&self) -> &'static str {
        match self {
            Self::Deployment(_) | Self::StatefulSet(_) => "apps",
            Self::Job(_) | Self::CronJob(_) => "batch",
        }
    }

    /// Converts it to an object to apply.
    pub fn object(&self) -> Value {
        let fields = match self {
            Self::Deployment(workload) => json!(workload),
            Self::StatefulSet(workload) => json!(workload),
            Self::Job(workload) => json!(workload),
            Self::CronJob(workload) => json!(workload),
        };
        without_nulls(fields)
    }

    /// Its metadata.
    pub fn metadata(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Deployment(workload) => &mut workload.metadata,
            Self::StatefulSet(workload) => &mut workload.metadata,
            Self::Job(workload) => &mut workload.metadata,
            Self::CronJob(workload) => &mut workload.metadata,
        }
    }

    /// The template of its pods.
    pub fn template(&mut self) -> &mut PodTemplateSpec {
        match self {
            Self::Deployment(workload) => &mut workload.spec.get_or_insert_default().template,
            Self::StatefulSet(workload) => &mut workload.spec.get_or_insert_default().template,
            Self::Job(workload) => &mut workload.spec.get_or_insert_default().template,
            Self::CronJob(workload) => {
                let job = &mut workload.spec.get_or_insert_default().job_template;
                &mut job.spec.get_or_insert_default().template
            }
        }
    }

    /// The replicas field, if the kind has one.
    pub fn replicas(&mut self) -> Option<&mut Option<i32>> {
        match self {
            Self::Deployment(workload) => Some(&mut workload.spec.get_or_insert_default().replicas),
            Self::StatefulSet(workload) => {
                Some(&mut workload.spec.get_or_insert_default().replicas)
            }
            Self::Job(_) | Self::CronJob(_) => None,
        }
    }
}

/// Removes nulls, because server-side apply would take ownership of these fields.
pub fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                fields
                    .map(|(key, value)| (key, without_nulls(value)))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        value => value,
    }
}
