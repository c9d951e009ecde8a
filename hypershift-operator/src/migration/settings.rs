//! How migrations are done: by flags, and by a ConfigMap that changes them while the operator runs.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;

use super::queue::Gate;
use crate::cache::{self, Found};
use crate::context::Context;
use crate::error::Error;

/// The ConfigMap, in the operator's namespace.
pub(super) const SWITCH: &str = "private-capi-migration";
/// Key: with `"true"`, no migration begins.
const PAUSED: &str = "paused";
/// Key: the maximum number of concurrent migrations.
const CONCURRENCY: &str = "concurrency";

/// The current settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Switch {
    pub(super) gate: Gate,
    pub(super) concurrency: usize,
}

/// What was read last, and the version that the watch had before.
#[derive(Debug)]
pub(super) struct Known {
    version: Found,
    switch: Switch,
}

// === impl Switch ===

impl Switch {
    /// Reads the ConfigMap, if it has changed since it was read. Without one, the flags apply.
    pub(super) async fn read(
        ctx: &Context,
        concurrency: usize,
        known: &mut Option<Known>,
    ) -> Result<Self, Error> {
        let namespace = &ctx.legacy_deployment.namespace;
        let version = (cache::CONFIG_MAPS, namespace.as_str(), SWITCH);
        let version = ctx.cache.index.version(version);
        if let (Some(known), Some(version)) = (&known, version)
            && known.version == version
        {
            return Ok(known.switch);
        }
        let api: Api<ConfigMap> = Api::namespaced(ctx.client.clone(), namespace);
        let found = api.get_opt(SWITCH).await;
        let found = found.map_err(|source| Error::Read {
            what: format!("ConfigMap {namespace}/{SWITCH}"),
            source,
        })?;
        let data = found.and_then(|found| found.data).unwrap_or_default();
        let switch = Self::new(&data, concurrency);
        *known = version.map(|version| Known { version, switch });
        Ok(switch)
    }

    /// Invalid values select the safe choice: paused, and the concurrency of the flag.
    fn new(data: &BTreeMap<String, String>, flag: usize) -> Self {
        let gate = match data.get(PAUSED).map(|it| it.trim()) {
            None | Some("false" | "") => Gate::Open,
            Some(_) => Gate::Paused,
        };
        let given = data.get(CONCURRENCY).and_then(|it| it.trim().parse().ok());
        Self {
            gate,
            concurrency: given.unwrap_or(flag),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_config_map_overrides_flags_and_pauses_if_invalid() {
        for (data, gate, concurrency) in [
            (&[][..], Gate::Open, 3),
            (&[(PAUSED, "true")], Gate::Paused, 3),
            (&[(PAUSED, "yes, please")], Gate::Paused, 3),
            (&[(PAUSED, "false"), (CONCURRENCY, "8")], Gate::Open, 8),
            (&[(CONCURRENCY, "many")], Gate::Open, 3),
        ] {
            let data = data
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            let found = Switch::new(&data.collect(), 3);
            assert_eq!(found, Switch { gate, concurrency });
        }
    }
}
