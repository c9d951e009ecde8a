//! `hypershift doctor`: what is installed, who owns what, and what is wrong.
//!
//! `observe` asks the cluster and only reads. [`examine`] decides, without I/O, and gives a [`Report`], which is
//! printed as text or JSON.

mod checks;
pub mod command;
mod observation;
mod observe;
mod report;

pub use checks::examine;
pub use observation::{
    CertificateFacts, ClusterFacts, CrdFacts, DeploymentFacts, Found, Mode, Observation,
    PermissionFacts, WebhookFacts, WebhookUser,
};
pub use report::{Detail, Finding, Report, Severity, Text};
