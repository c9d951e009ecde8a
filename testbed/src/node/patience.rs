//! How soon a node that says nothing is given up.

use serde_json::{Value, json};

use crate::control_plane::ControlPlane;

/// How soon a silent node is marked as not ready. By default, Kubernetes does that after 50 seconds, and its pods
/// five minutes later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Seconds of silence after which a node is not ready, and nothing is sent to its pods any more.
    pub silence: u16,
    /// Seconds after that in which its pods may return, before others take their place.
    pub absence: u16,
}

// === impl Patience ===

impl Patience {
    /// Has the control plane know it, before that starts.
    pub(super) fn apply_to(self, control_plane: &mut ControlPlane) {
        let manager = &mut control_plane.controller_manager;
        manager.add_flag("node-monitor-period", "1s");
        manager.add_flag("node-monitor-grace-period", format!("{}s", self.silence));
        let server = &mut control_plane.api_server;
        for taint in ["not-ready", "unreachable"] {
            server.add_flag(&format!("default-{taint}-toleration-seconds"), self.absence);
        }
    }

    /// Has a kubelet report often enough: it renews its lease four times in the time that it holds.
    pub(super) fn configure_kubelet(self, config: &mut Value) {
        config["nodeLeaseDurationSeconds"] = json!(self.silence);
        config["nodeStatusUpdateFrequency"] = json!("2s");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelets_report_more_often_than_the_grace_period() {
        let mut config = json!({ "kind": "KubeletConfiguration" });
        let patience = Patience {
            silence: 10,
            absence: 5,
        };
        patience.configure_kubelet(&mut config);
        assert_eq!(config["nodeLeaseDurationSeconds"], 10);
        assert_eq!(config["nodeStatusUpdateFrequency"], "2s");
    }
}
