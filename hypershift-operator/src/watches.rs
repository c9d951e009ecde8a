//! How objects are watched.

mod lenient;

use std::fmt::Debug;
use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use kube::runtime::watcher::{Config, Error, Event};
use kube::runtime::{WatchStreamExt as _, watcher as start};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use support::reconcile::{Backoff, is_missing};
use support::watch::watch_failed;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep};

pub(crate) use lenient::Lenient;

/// Objects in one page of the list that a watch begins with. All watches begin at once, and managed fields take many
/// times the memory of what is stored.
const PAGE: u32 = 100;

/// Objects in one page where they are watched whole: each takes a hundred KiB while it is read.
const WHOLE: u32 = 25;

/// Seconds after which a watch is started again whose permissions are checked often. The API server checks them when a
/// watch starts, and an open watch outlives its permissions.
const CHECKED: u32 = 30;

/// Within this time after its CRD was created, a kind is served.
const SERVED_WITHIN: Duration = Duration::from_secs(30);
/// The pause until a kind is listed again that is not served yet.
const RETRY: Duration = Duration::from_secs(2);

/// An event of a watch, or its failure.
pub(crate) type WatchResult<K> = Result<Event<K>, Error>;

/// A watch of whole objects.
pub(crate) fn whole() -> Config {
    Config::default().page_size(WHOLE)
}

/// A watch that begins in small pages.
pub(crate) fn config() -> Config {
    Config::default().page_size(PAGE)
}

/// A watch on which ownership depends: a permission that was revoked is reported within a minute.
pub(crate) fn checked(config: Config) -> Config {
    config.timeout(CHECKED)
}

/// Watches, with backoff after failures. After a failure that leaves it unknown which objects there are, it lists again:
/// a watch that only resumes reports nothing until an object changes.
pub(crate) fn watch<K>(api: Api<K>, config: Config) -> impl Stream<Item = WatchResult<K>> + Send
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let begin = move || start(api.clone(), config.clone()).boxed();
    let events = stream::unfold(None, move |running| {
        let mut running = running.unwrap_or_else(&begin);
        async move {
            let event = running.next().await?;
            let resumes = !matches!(&event, Err(error) if lists_again(error));
            Some((event, resumes.then_some(running)))
        }
    });
    events.backoff(Backoff::default())
}

/// The same of a kind that may have no CRD. While it has none, it is listed again only after a CRD has changed.
pub(crate) fn watch_optional<K>(
    api: Api<K>,
    config: Config,
    crds: Receiver<Option<Instant>>,
) -> impl Stream<Item = WatchResult<K>> + Send
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let begin = move || watch(api.clone(), config.clone()).boxed();
    stream::unfold((Some(begin()), crds), move |(running, mut crds)| {
        let begin = begin.clone();
        async move {
            let mut running = if let Some(running) = running {
                running
            } else {
                until_changed(&mut crds).await;
                begin()
            };
            let event = running.next().await?;
            let is_absent =
                matches!(&event, Err(Error::InitialListFailed(error)) if is_missing(error));
            Some((event, ((!is_absent).then_some(running), crds)))
        }
    })
}

/// The objects of a watch in which one that cannot be read whole has its identity only.
pub(crate) fn readable<K>(
    events: impl Stream<Item = WatchResult<Lenient<K>>> + Send,
) -> impl Stream<Item = WatchResult<K>> + Send {
    events.map(|event| {
        event.map(|event| match event {
            Event::Apply(Lenient(object)) => Event::Apply(object),
            Event::Delete(Lenient(object)) => Event::Delete(object),
            Event::Init => Event::Init,
            Event::InitApply(Lenient(object)) => Event::InitApply(object),
            Event::InitDone => Event::InitDone,
        })
    })
}

/// Waits until a CRD has changed a short time ago, or until it is known when one did.
async fn until_changed(crds: &mut Receiver<Option<Instant>>) {
    loop {
        let changed = *crds.borrow_and_update();
        if changed.is_none_or(|at| at.elapsed() < SERVED_WITHIN) {
            sleep(RETRY).await;
            return;
        }
        if crds.changed().await.is_err() {
            // The term is over.
            std::future::pending::<()>().await;
        }
    }
}

fn lists_again(error: &Error) -> bool {
    let is_gone = |error: &Error| matches!(error, Error::WatchStartFailed(it) if is_missing(it));
    watch_failed(error) || is_gone(error)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    /// Check O04.
    #[tokio::test(start_paused = true)]
    async fn a_kind_without_a_crd_is_listed_again_after_a_crd_has_changed() {
        let path = "/api/v1/configmaps";
        let absent = Expect::get(path).answer(Answer::error(404, "NotFound"));
        let scenario = Scenario::new([]).always([absent]);
        let (sender, crds) = tokio::sync::watch::channel(Some(Instant::now()));
        let api: Api<ConfigMap> = Api::all(scenario.client());
        let mut events = std::pin::pin!(watch_optional(api, config(), crds));
        let mut lists = async || {
            let before = scenario.seen().len();
            let day = Duration::from_hours(24);
            let all = async { while events.next().await.is_some() {} };
            let _ = tokio::time::timeout(day, all).await;
            scenario.seen().len() - before
        };
        assert!(lists().await > 1, "its CRD may be new");
        assert_eq!(lists().await, 0);
        sender.send_replace(Some(Instant::now()));
        assert!(lists().await > 1, "a CRD has changed");
        assert_eq!(lists().await, 0);
    }

    /// Check T04.
    #[tokio::test(start_paused = true)]
    async fn an_object_that_cannot_be_read_is_watched_with_the_others() {
        let deep = (0..300).fold(json!("end"), |inner, _| json!([inner]));
        let object = |name: &str, spec| json!({ "metadata": { "name": name, "resourceVersion": "1" }, "spec": spec });
        let found = [object("deep", deep), object("flat", json!({}))];
        let list = Expect::get("/apis/a/v1/as").answer(Answer::list(&found));
        let scenario = Scenario::new([list]);
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("a", "v1", "A"));
        let api: Api<Lenient<DynamicObject>> = Api::all_with(scenario.client(), &resource);
        let mut events = std::pin::pin!(readable(watch(api, config())));
        let mut names = Vec::new();
        loop {
            match events.next().await.unwrap().unwrap() {
                Event::InitApply(object) => names.push(object.metadata.name.unwrap()),
                Event::InitDone => break,
                _ => {}
            }
        }
        assert_eq!(names, ["deep", "flat"]);
        scenario.finish();
    }

    /// Check O06.
    #[tokio::test(start_paused = true)]
    async fn a_watch_whose_permission_was_revoked_lists_again() {
        let path = "/api/v1/configmaps";
        let found = json!({ "metadata": { "name": "a", "resourceVersion": "1" } });
        let list = || Expect::get(path).answer(Answer::list(std::slice::from_ref(&found)));
        let refused = |code| Expect::get(path).answer(Answer::error(code, "Forbidden"));
        for code in [403, 404] {
            let scenario = Scenario::new([list(), refused(code), list()]);
            let api: Api<ConfigMap> = Api::all(scenario.client());
            let mut events = std::pin::pin!(watch(api, config()));
            let mut lists = 0;
            let mut failures = 0;
            while lists < 2 {
                match events.next().await.unwrap() {
                    Ok(Event::InitDone) => lists += 1,
                    Ok(_) => {}
                    Err(_) => failures += 1,
                }
            }
            assert_eq!(failures, 1, "{code}");
            scenario.finish();
        }
    }
}
