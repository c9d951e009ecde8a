//! Metrics of a control plane.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::with;

/// Which metrics of the control plane are collected, and where they go.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = with("minProperties", 1))]
pub struct MonitoringSpec {
    /// Which metrics the management cluster collects. Without a value the operator's setting
    /// decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_set: Option<MetricsSet>,
    /// Whether metrics of the control plane also appear in the hosted cluster's own monitoring.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_forwarding: Option<MetricsForwarding>,
}

/// Metrics of the control plane in the hosted cluster's own monitoring.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricsForwarding {
    /// Whether they are forwarded.
    pub mode: MetricsForwardingMode,
    /// Which ones are forwarded. Without a value it is what `spec.monitoring.metricsSet` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_set: Option<MetricsSet>,
}

/// A choice of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum MetricsSet {
    /// Those that telemetry needs.
    Telemetry,
    /// Those that the alerts of SREs need, from the ConfigMap `sre-metric-set`.
    #[serde(rename = "SRE")]
    Sre,
    /// All.
    All,
}

/// Whether metrics are forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum MetricsForwardingMode {
    /// They are.
    Forward,
    /// They are not.
    None,
}
