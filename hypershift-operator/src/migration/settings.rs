//! How migrations are done: by flags, and by a ConfigMap that changes them while the operator runs.

use std::collections::BTreeMap;
use std::time::Duration;

use api::group::GroupTable;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;

use super::queue::Gate;
use crate::context::Context;
use crate::error::Error;

/// The ConfigMap, in the operator's namespace.
pub(super) const SWITCH: &str = "private-capi-migration";
/// Key: `"true"` begins no migration.
const PAUSED: &str = "paused";
/// Key: how many at a time.
const CONCURRENCY: &str = "concurrency";

/// What the flags say.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// How many at a time. With 0 there are none, not even those that were begun.
    pub(crate) concurrency: usize,
    /// How long a cluster has to be well before its migration is committed.
    pub(crate) health_window: Duration,
    /// The groups that are moved.
    pub(crate) groups: GroupTable,
}

/// What holds now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Switch {
    pub(super) gate: Gate,
    pub(super) concurrency: usize,
}

// === impl Switch ===

impl Switch {
    /// Reads the ConfigMap. Without one, the flags hold.
    pub(super) async fn read(ctx: &Context) -> Result<Self, Error> {
        let namespace = &ctx.legacy_deployment.namespace;
        let api: Api<ConfigMap> = Api::namespaced(ctx.client.clone(), namespace);
        let found = api.get_opt(SWITCH).await;
        let found = found.map_err(|source| Error::Read {
            what: format!("ConfigMap {namespace}/{SWITCH}"),
            source,
        })?;
        let data = found.and_then(|found| found.data).unwrap_or_default();
        Ok(Self::new(&data, ctx.migrations.settings.concurrency))
    }

    /// What cannot be read is taken for the careful choice: a pause, and the flag's number.
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
    fn the_switch_wins_over_flags_and_pauses_when_in_doubt() {
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
