//! The scheduler's configuration: the scoring profile.

use api::hypershift::v1beta1::configuration::scheduler::SchedulerProfile;
use control_plane_component::{Context, Error, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

const KEY: &str = "config.json";

pub(super) fn adapt(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let data = config_map.data.get_or_insert_default();
    let text = data.get(KEY).cloned().unwrap_or_default();
    let mut config: Value = serde_saphyr::from_str(&text)
        .map_err(|_| Error::missing("manifest of ConfigMap kube-scheduler", KEY))?;
    let configuration = context.spec().configuration.as_ref();
    let requested = configuration
        .and_then(|configuration| configuration.scheduler.as_ref())
        .and_then(|scheduler| scheduler.profile);
    if let Some(profile) = requested.and_then(profile) {
        config["profiles"] = json!([profile]);
    }
    data.insert(KEY.to_owned(), config.to_string());
    Ok(())
}

/// Converts the profile to the scheduler's configuration. The default spreads pods over nodes.
fn profile(requested: SchedulerProfile) -> Option<Value> {
    match requested {
        SchedulerProfile::Unset | SchedulerProfile::LowNodeUtilization => None,
        SchedulerProfile::HighNodeUtilization => Some(packed()),
        SchedulerProfile::NoScoring => Some(unscored()),
    }
}

/// Bin packing: as few nodes as possible.
fn packed() -> Value {
    json!({
        "schedulerName": "default-scheduler",
        "plugins": { "score": {
            "disabled": [{ "name": "NodeResourcesBalancedAllocation" }],
            "enabled": [{ "name": "NodeResourcesFit", "weight": 5 }],
        } },
        "pluginConfig": [{ "name": "NodeResourcesFit", "args": { "scoringStrategy": {
            "type": "MostAllocated",
            "resources": [{ "name": "cpu", "weight": 1 }, { "name": "memory", "weight": 1 }],
        } } }],
    })
}

/// No scoring: the first feasible node.
fn unscored() -> Value {
    json!({
        "schedulerName": "default-scheduler",
        "plugins": {
            "preScore": { "disabled": [{ "name": "*" }] },
            "score": { "disabled": [{ "name": "*" }] },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_scheduler_profile_is_omitted() {
        assert_eq!(profile(SchedulerProfile::Unset), None);
        assert_eq!(profile(SchedulerProfile::LowNodeUtilization), None);
        let packed = profile(SchedulerProfile::HighNodeUtilization).unwrap();
        let strategy = &packed["pluginConfig"][0]["args"]["scoringStrategy"];
        assert_eq!(strategy["type"], "MostAllocated");
        let unscored = profile(SchedulerProfile::NoScoring).unwrap();
        assert_eq!(unscored["plugins"]["score"]["disabled"][0]["name"], "*");
    }
}
