//! Registries that keep their clients waiting: what it costs those who do not use them. Limits are those of production,
//! a hundred times shorter.

use std::sync::Arc;
use std::time::{Duration, Instant};

use payload::{Error, Limits, Mirrors, Options, PullSecret, Reason, Release, Releases};
use serde_json::json;
use tokio::sync::Semaphore;

use super::{options, secret};
use crate::image::Image;
use crate::server::{Fault, Server};

/// Reconciles at once, as in the operator.
const WORKERS: usize = 8;
/// Clusters of the tenant with the slow registry.
const SLOW_CLUSTERS: usize = 40;
/// When a reconcile of an image that is being read is requeued.
const REQUEUE: Duration = Duration::from_millis(20);

fn limits() -> Limits {
    Limits {
        request: Duration::from_millis(300),
        read: Duration::from_secs(6),
        rate: 16 << 10,
        wait: Duration::from_millis(20),
        ..Limits::default()
    }
}

fn limited(servers: &[&Server]) -> Options {
    Options {
        limits: limits(),
        ..options(servers)
    }
}

fn faults(image: &Image) -> [(&'static str, Fault, &'static str); 3] {
    let drip = |path: &str| Fault::Drip {
        path: path.to_owned(),
        every: Duration::from_millis(290),
    };
    [
        ("drips", drip("/v2/"), "--registry-request-timeout"),
        ("is silent", Fault::Silent, "--registry-request-timeout"),
        ("drips its layer", drip(image.top()), "--registry-min-rate"),
    ]
}

/// Reconciles until the image is read, or cannot be.
async fn reconcile(
    workers: &Semaphore,
    releases: &Releases,
    image: &str,
) -> Result<Arc<Release>, Error> {
    loop {
        let worker = workers.acquire().await.unwrap();
        let read = releases.get(image, &PullSecret::anonymous()).await;
        drop(worker);
        match read {
            Err(error) if error.is_in_progress() => tokio::time::sleep(REQUEUE).await,
            read => return read,
        }
    }
}

/// How long a cluster of another tenant takes, with this many clusters of a tenant with a slow registry.
async fn time_of_another(slow: &Server, fast: &Server, clusters: usize) -> (Duration, Vec<Error>) {
    let releases = Releases::new(limited(&[slow, fast])).unwrap();
    let workers = Arc::new(Semaphore::new(WORKERS));
    let mut failing = tokio::task::JoinSet::new();
    for number in 0..clusters {
        let (workers, releases) = (workers.clone(), releases.for_tenant("slow"));
        let image = slow.tag(&format!("a{}", number % 4));
        failing.spawn(async move { reconcile(&workers, &releases, &image).await });
    }
    // All of them occupy what they can get.
    tokio::task::yield_now().await;
    let begun = Instant::now();
    let read = reconcile(&workers, &releases.for_tenant("fast"), &fast.tag("a")).await;
    let took = begun.elapsed();
    assert_eq!(read.unwrap().version.to_string(), "4.22.1");
    let failed = failing.join_all().await;
    (took, failed.into_iter().map(|it| it.unwrap_err()).collect())
}

/// Check T02.
#[tokio::test]
async fn slow_registries_do_not_delay_other_tenants() {
    let image = Image::release("4.22.1", "images.example.com");
    let other = Image::release("4.22.2", "images.example.com");
    for (name, fault, limit) in faults(&other) {
        let (slow, fast) = (Server::start().await, Server::start().await);
        for number in 0..4 {
            slow.push(&format!("a{number}"), &other);
        }
        fast.push("a", &image);
        slow.state().fault = Some(fault);
        let (alone, _) = time_of_another(&slow, &fast, 0).await;
        let (beside, failed) = time_of_another(&slow, &fast, SLOW_CLUSTERS).await;
        let ratio = beside.as_secs_f64() / alone.as_secs_f64();
        println!("registry {name}: {alone:?} alone, {beside:?} beside it, ratio {ratio:.2}");
        // Less than a single request to the slow registry may take, with 40 clusters that use 8 workers.
        assert!(beside < limits().request, "{name}: {beside:?}");
        assert_eq!(failed.len(), SLOW_CLUSTERS);
        for error in failed {
            let text = support::error::chain(&error);
            assert_eq!(error.kind(), Reason::TooSlow, "{name}: {text}");
            for part in [&*slow.host(), error.image(), limit, "imageContentSources"] {
                assert!(text.contains(part), "{name}: {part} is not in {text}");
            }
        }
    }
}

/// Check T02. The same digest at two places: the mirror of one tenant does not hold up the other.
#[tokio::test]
async fn a_slow_mirror_delays_only_those_who_use_it() {
    let (mirror, origin) = (Server::start().await, Server::start().await);
    let image = Image::release("4.22.1", "images.example.com");
    for server in [&mirror, &origin] {
        server.push("a", &image);
    }
    let path = image.top().to_owned();
    let every = Duration::from_millis(290);
    mirror.state().fault = Some(Fault::Drip { path, every });
    let releases = Releases::new(limited(&[&mirror, &origin])).unwrap();
    let source = format!("{}/ocp", origin.host());
    let mirrors = Mirrors::new([(source, vec![format!("{}/ocp", mirror.host())])]);
    let name = origin.digest(&image.manifest);
    let through_mirror = releases.with_mirrors(&mirrors);
    let anonymous = PullSecret::anonymous();
    let mut dripping = std::pin::pin!(through_mirror.get(&name, &anonymous));
    while mirror.requests(image.top()) == 0 {
        assert!(futures::poll!(&mut dripping).is_pending());
        tokio::task::yield_now().await;
    }
    let read = releases.get(&name, &anonymous).await.unwrap();
    assert_eq!(read.mirror, None);
    assert!(futures::poll!(&mut dripping).is_pending());
    assert_eq!(dripping.await.unwrap_err().kind(), Reason::TooSlow);
}

/// Check T02. Other credentials are another flight: whether they may read it is for the registry to say.
#[tokio::test]
async fn flights_are_shared_by_place_and_credentials() {
    let server = Server::start().await;
    let image = Image::release("4.22.1", "images.example.com");
    server.push("a", &image);
    let releases = Releases::new(limited(&[&server])).unwrap();
    let name = server.digest(&image.manifest);
    let entry = json!({ "username": "someone", "password": "x" });
    let known = secret(&json!({ server.host(): entry }));
    let anonymous = PullSecret::anonymous();
    let (first, second) = (releases.for_tenant("a"), releases.for_tenant("b"));
    let (one, two, other) = tokio::join!(
        first.get(&name, &anonymous),
        second.get(&name, &anonymous),
        releases.get(&name, &known),
    );
    assert!(one.is_ok() && two.is_ok() && other.is_ok());
    assert_eq!(server.requests(image.top()), 2);
}

/// Check T02. A layer that arrives slowly, but fast enough, is read beyond a single window.
#[tokio::test]
async fn a_registry_above_the_minimum_rate_is_read_to_the_end() {
    let server = Server::start().await;
    let image = Image::release("4.22.1", "images.example.com");
    server.push("a", &image);
    let path = image.top().to_owned();
    let every = Duration::from_millis(1);
    server.state().fault = Some(Fault::Drip { path, every });
    let slow_enough = Limits {
        request: Duration::from_millis(100),
        rate: 50,
        ..limits()
    };
    let options = Options {
        limits: slow_enough,
        ..options(&[&server])
    };
    let begun = Instant::now();
    let releases = Releases::new(options).unwrap();
    super::anonymous(&releases, &server.tag("a")).await.unwrap();
    assert!(begun.elapsed() > Duration::from_millis(200), "not slow");
}

/// Check T02. A registry that drips above the minimum rate does not continue for ever.
#[tokio::test]
async fn reading_an_image_has_a_total_deadline() {
    let server = Server::start().await;
    let image = Image::release("4.22.1", "images.example.com");
    server.push("a", &image);
    let path = image.top().to_owned();
    let every = Duration::from_millis(20);
    server.state().fault = Some(Fault::Drip { path, every });
    let limits = Limits {
        rate: 1,
        read: Duration::from_millis(700),
        ..limits()
    };
    let options = Options {
        limits,
        ..options(&[&server])
    };
    let releases = Releases::new(options).unwrap();
    let begun = Instant::now();
    let read = super::anonymous(&releases, &server.tag("a")).await;
    let error = read.unwrap_err();
    assert_eq!(error.kind(), Reason::TooSlow);
    assert!(
        error.to_string().contains("--release-read-timeout"),
        "{error}"
    );
    assert!(begun.elapsed() < Duration::from_secs(5));
}

/// Check T02. What is known is used while the registry does not respond, after a brief wait.
#[tokio::test]
async fn a_tenant_keeps_its_release_while_its_registry_is_slow() {
    let server = Server::start().await;
    server.push("a", &Image::release("4.22.1", "images.example.com"));
    let options = Options {
        believed: Duration::ZERO,
        ..limited(&[&server])
    };
    let releases = Releases::new(options).unwrap().for_tenant("a");
    let workers = Semaphore::new(1);
    let first = Releases::get(&releases, &server.tag("a"), &PullSecret::anonymous()).await;
    let first = match first {
        Ok(release) => release,
        Err(_) => reconcile(&workers, &releases, &server.tag("a"))
            .await
            .unwrap(),
    };
    server.state().fault = Some(Fault::Silent);
    for _ in 0..3 {
        let begun = Instant::now();
        let again = releases
            .get(&server.tag("a"), &PullSecret::anonymous())
            .await;
        assert_eq!(again.unwrap(), first);
        assert!(begun.elapsed() < limits().request);
    }
}
