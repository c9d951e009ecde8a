//! What a platform knows of a cluster's machines, and whether they were touched.

use anyhow::Result;
use api::group::CapiTypes;
use testbed::hosted::{Cluster, Identities, Platform};

/// The machines of a platform.
pub(crate) trait Machines {
    /// What was begun to be recorded.
    type Record;

    /// The platform of clusters with such machines.
    fn platform(&self) -> Platform<'_>;

    /// The flags that an installation for Cluster API's kinds of given types needs for them.
    fn flags(&self, types: CapiTypes) -> Vec<String>;

    /// Adds what their provider needs of the platform's own Cluster API, once an installation for standard types has
    /// made it.
    async fn extend_standard(&self) -> Result<()>;

    /// Adds the machines of a cluster, each with what changes when it is replaced, is started again, or gets another
    /// description. Its nodes are known already.
    async fn identify(&self, cluster: &Cluster<'_>, all: &mut Identities) -> Result<()>;

    /// Begins to record what is requested of the platform.
    async fn record(&self) -> Result<Self::Record>;

    /// Fails if anything was requested since then that changes a machine; returns a summary.
    async fn are_untouched(&self, record: Self::Record) -> Result<String>;

    /// The output of the machines, for diagnosis; empty where there is none.
    fn said(&self) -> String;
}
