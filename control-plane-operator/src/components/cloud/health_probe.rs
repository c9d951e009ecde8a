//! How load balancers of a cloud find the nodes that are healthy, by annotations of the cluster.

use control_plane_component::{Context, Error, Result};

/// Annotation: path of the shared probe.
pub(crate) const PATH: &str = "hypershift.openshift.io/shared-load-balancer-health-probe-path";
/// Annotation: port of the shared probe.
pub(crate) const PORT: &str = "hypershift.openshift.io/shared-load-balancer-health-probe-port";

/// A health probe of load balancers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HealthProbe<'a> {
    /// One probe for all Services of a node, or a probe of the node port of each.
    pub(crate) mode: &'static str,
    /// Path of the shared probe; `None` is the default of the cloud.
    pub(crate) path: Option<&'a str>,
    /// Port of the shared probe; `None` is the default of the cloud.
    pub(crate) port: Option<u16>,
}

/// The modes of a cloud, and the annotation that selects one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Modes {
    /// The annotation.
    pub(crate) annotation: &'static str,
    /// One probe for all Services of a node. The default.
    pub(crate) shared: &'static str,
    /// A probe of the node port of each Service.
    pub(crate) by_service: &'static str,
}

// === impl Modes ===

impl Modes {
    /// Reads the annotations. Path and port have no effect unless the probe is shared.
    pub(crate) fn health_probe<'a>(self, context: &Context<'a>) -> Result<HealthProbe<'a>> {
        let requested = annotation(context, self.annotation);
        match requested {
            Some(mode) if mode == self.by_service => Ok(HealthProbe {
                mode: self.by_service,
                path: None,
                port: None,
            }),
            Some(mode) if mode != self.shared => {
                let hint = format!("write {} or {}", self.shared, self.by_service);
                Err(invalid(self.annotation, mode, hint))
            }
            _ => Ok(HealthProbe {
                mode: self.shared,
                path: annotation(context, PATH),
                port: port(context)?,
            }),
        }
    }
}

fn port(context: &Context<'_>) -> Result<Option<u16>> {
    let Some(text) = annotation(context, PORT) else {
        return Ok(None);
    };
    match text.parse() {
        Ok(port) if port > 0 => Ok(Some(port)),
        _ => {
            let hint = "write a port between 1 and 65535".to_owned();
            Err(invalid(PORT, text, hint))
        }
    }
}

/// An annotation, unless it is empty.
fn annotation<'a>(context: &Context<'a>, key: &str) -> Option<&'a str> {
    context.annotation(key).filter(|value| !value.is_empty())
}

fn invalid(annotation: &str, value: &str, hint: String) -> Error {
    Error::Invalid {
        field: annotation.to_owned(),
        value: value.to_owned(),
        hint,
    }
}
