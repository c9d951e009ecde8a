//! Rest: when everything is as it should be, there are no writes.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::group::{CapiTypes, GroupTable};
use testbed::audit::{Event, Mark};
use testbed::testbed::Testbed;
use testbed::wait;

use crate::cluster_api::platform::Platform;
use crate::cluster_api::{HOSTED, PLATFORM};

/// How long it must be quiet.
const REST: Duration = Duration::from_mins(2);
/// How long controllers may take to become idle, and for how long there must be no write to count as idle.
const SETTLED_WITHIN: Duration = Duration::from_mins(2);
const QUIET: Duration = Duration::from_secs(5);

/// The number of writes to Cluster API since the mark.
pub(crate) fn writes(testbed: &mut Testbed, mark: Mark) -> Result<usize> {
    Ok(written(testbed, mark)?.len())
}

/// Waits until both Cluster APIs are idle, and checks that they stay idle.
pub(crate) async fn nothing_is_written(testbed: &mut Testbed, platform: &Platform) -> Result<()> {
    settle(testbed).await?;
    let mark = testbed.control_plane.audit.mark()?;
    wait::throughout("rest", REST, async || {
        let written = written(testbed, mark)?;
        ensure!(
            written.is_empty(),
            "writes at rest:\n{}",
            written.join("\n")
        );
        Ok(())
    })
    .await?;
    ensure!(
        testbed.control_plane.audit.mark()? != mark,
        "the audit log has nothing of these two minutes: it is not looked at in the right place"
    );
    platform.is_unchanged(testbed).await
}

async fn settle(testbed: &mut Testbed) -> Result<()> {
    wait::until("the last writes", SETTLED_WITHIN, async || {
        let mark = testbed.control_plane.audit.mark()?;
        wait::throughout("quiet", QUIET, async || {
            let written = written(testbed, mark)?;
            ensure!(written.is_empty(), "{}", written.join("\n"));
            Ok(())
        })
        .await
    })
    .await
}

fn written(testbed: &mut Testbed, mark: Mark) -> Result<Vec<String>> {
    let mut managers = testbed.cluster_api(CapiTypes::Private)?.usernames();
    if let Ok(platform) = testbed.cluster_api(CapiTypes::Standard) {
        managers.extend(platform.usernames());
    }
    let table = GroupTable::default();
    let ours = |event: &Event| {
        managers.contains(&event.user.username)
            || table.find(event.object_ref.api_group.as_bytes()).is_some()
            || [HOSTED, PLATFORM].contains(&event.object_ref.namespace.as_str())
    };
    // The testbed renews the tokens of its service accounts, as a kubelet would.
    let renewal = |event: &Event| event.object_ref.subresource == "token";
    let events = testbed.control_plane.audit.since(mark)?;
    Ok(events
        .iter()
        .filter(|event| event.is_write() && ours(event) && !renewal(event))
        .map(Event::summary)
        .collect())
}
