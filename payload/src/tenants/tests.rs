//! Waiting of reconciles, in paused time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{advance, sleep};

use super::*;
use crate::error::Reason;

const IMAGE: &str = "registry.example.com/ocp/release:1";

fn reads() -> Reads<u32, u32> {
    Reads::new(Limits::default())
}

fn question(tenant: &str, read: u32) -> Question<u32> {
    Question {
        tenant: Arc::from(tenant),
        read,
    }
}

async fn after(time: Duration, result: ReadResult<u32>) -> ReadResult<u32> {
    sleep(time).await;
    result
}

fn broken() -> ReadResult<u32> {
    Err(Error::new(IMAGE, Reason::TooSlow, "it drips"))
}

const SLOW: Duration = Duration::from_secs(40);
const FAST: Duration = Duration::from_millis(10);

/// Check T02.
#[tokio::test(start_paused = true)]
async fn a_reconcile_waits_briefly_and_finds_the_failure_later() {
    let reads = reads();
    let ask = || reads.get(question("a", 1), IMAGE, || after(SLOW, broken()));
    let begun = Instant::now();
    let error = ask().await.unwrap_err();
    assert_eq!(error.kind(), Reason::InProgress);
    assert_eq!(begun.elapsed(), Limits::default().wait);
    assert_eq!(ask().await.unwrap_err().kind(), Reason::InProgress);
    assert_eq!(begun.elapsed(), Limits::default().wait, "it waited again");
    sleep(SLOW).await;
    assert_eq!(ask().await.unwrap_err().kind(), Reason::TooSlow);
    // While it is read again, the last failure is reported.
    advance(Limits::RETRY_AFTER).await;
    assert_eq!(ask().await.unwrap_err().kind(), Reason::TooSlow);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(ask().await.unwrap_err().kind(), Reason::TooSlow);
}

/// Check T02.
#[tokio::test(start_paused = true)]
async fn slow_reads_of_one_tenant_do_not_delay_another() {
    let reads = reads();
    let begun = Instant::now();
    let slow: Vec<_> = (0..100)
        .map(|read| reads.get(question("slow", read), IMAGE, || after(SLOW, broken())))
        .collect();
    let slow = futures::future::join_all(slow);
    let fast = reads.get(question("fast", 1), IMAGE, || after(FAST, Ok(7)));
    let (slow, fast) = tokio::join!(slow, async { (fast.await, begun.elapsed()) });
    assert_eq!(fast.0.unwrap(), 7);
    assert!(fast.1 <= FAST * 2, "{:?}", fast.1);
    assert!(slow.iter().all(Result::is_err));
    // From now on, reconciles of the slow tenant do not wait at all.
    let begun = Instant::now();
    for read in 100..200 {
        let read = reads.get(question("slow", read), IMAGE, || after(SLOW, broken()));
        assert!(read.await.is_err());
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

/// Check T02.
#[tokio::test(start_paused = true)]
async fn a_tenant_reads_no_more_than_its_share_at_once() {
    let reads = reads();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let read = |number| {
        let (now, most) = (now.clone(), most.clone());
        reads.get(question("a", number), IMAGE, move || async move {
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            sleep(FAST).await;
            now.fetch_sub(1, Ordering::Relaxed);
            Ok(number)
        })
    };
    futures::future::join_all((0..20).map(read)).await;
    sleep(FAST * 20).await;
    assert_eq!(
        most.load(Ordering::Relaxed),
        Limits::default().reads_per_tenant
    );
}

#[tokio::test(start_paused = true)]
async fn fast_failures_are_not_remembered() {
    let reads = reads();
    let failed = reads.get(question("a", 1), IMAGE, || after(FAST, broken()));
    assert_eq!(failed.await.unwrap_err().kind(), Reason::TooSlow);
    let read = reads.get(question("a", 1), IMAGE, || after(FAST, Ok(2)));
    assert_eq!(read.await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn no_state_is_kept_for_removed_tenants() {
    let reads = reads();
    for tenant in 0..50 {
        let tenant = tenant.to_string();
        let read = reads.get(question(&tenant, 1), IMAGE, || after(FAST, Ok(1)));
        read.await.unwrap();
    }
    let table = unpoisoned(&reads.table);
    assert!(table.tenants.is_empty(), "{}", table.tenants.len());
}

/// Check T22.
#[tokio::test(start_paused = true)]
async fn a_tenant_holds_few_reads_and_another_reads_at_once() {
    let reads = reads();
    let secret = Arc::new(());
    let held = || Arc::strong_count(&secret) - 1;
    for image in 0..100 {
        let secret = secret.clone();
        let hung = move || async move {
            std::future::pending::<()>().await;
            drop(secret);
            Ok(image)
        };
        let read = reads.get(question("slow", image), IMAGE, hung).await;
        assert_eq!(read.unwrap_err().kind(), Reason::InProgress);
        assert!(held() <= RUNNING_AT_ONCE, "{}", held());
    }
    assert_eq!(held(), RUNNING_AT_ONCE);
    let begun = Instant::now();
    let fast = reads.get(question("fast", 1), IMAGE, || after(FAST, Ok(7)));
    assert_eq!(fast.await.unwrap(), 7);
    assert!(begun.elapsed() <= FAST * 2, "{:?}", begun.elapsed());
    let table = unpoisoned(&reads.table);
    assert_eq!(table.tenants["slow"].running.len(), RUNNING_AT_ONCE);
    assert_eq!(table.tenants["slow"].queue.len(), 100 - RUNNING_AT_ONCE);
}

/// Check T22.
#[tokio::test(start_paused = true)]
async fn each_image_of_a_slow_tenant_gets_its_turn() {
    const IMAGES: u32 = 100;
    let reads = reads();
    let started = Arc::new(Mutex::new(Vec::new()));
    let begun = Instant::now();
    let turn = SLOW / u32::try_from(Limits::default().reads_per_tenant).unwrap();
    // The first images are requested first each time, and again as soon as their errors allow it.
    while begun.elapsed() < turn * (IMAGES + 20) {
        for image in 0..IMAGES {
            let started = started.clone();
            let read = move || async move {
                unpoisoned(&started).push(image);
                after(SLOW, broken()).await
            };
            let error = reads.get(question("slow", image), IMAGE, read).await;
            let error = error.unwrap_err();
            let is_read = error.kind() == Reason::TooSlow;
            assert!(is_read || error.retry_after().is_some(), "{error}");
        }
        sleep(Duration::from_secs(10)).await;
    }
    let started = unpoisoned(&started);
    let first = started.iter().take(100).copied().collect::<Vec<_>>();
    assert_eq!(first, (0..IMAGES).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn an_image_that_is_not_requested_loses_its_place() {
    let reads = reads();
    let ask = |image| reads.get(question("a", image), IMAGE, move || after(SLOW, Ok(image)));
    for image in 0..100 {
        assert!(ask(image).await.is_err());
    }
    // All that run end, and nothing requests those that wait.
    sleep(SLOW * 4 + PLACE_KEPT).await;
    assert!(ask(100).await.is_err());
    let table = unpoisoned(&reads.table);
    assert_eq!(table.tenants["a"].running.len(), 1);
    assert!(table.tenants["a"].queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_read_that_panics_is_forgotten() {
    async fn panicking() -> ReadResult<u32> {
        panic!("a bug")
    }
    let reads = reads();
    let read = reads.get(question("a", 1), IMAGE, panicking);
    assert_eq!(read.await.unwrap_err().kind(), Reason::Unreachable);
    let read = reads.get(question("a", 1), IMAGE, || after(FAST, Ok(2)));
    assert_eq!(read.await.unwrap(), 2);
    assert!(unpoisoned(&reads.table).tenants.is_empty());
}

#[tokio::test(start_paused = true)]
async fn errors_are_forgotten_when_they_are_not_requested() {
    let reads = reads();
    let ask = |tenant| reads.get(question(tenant, 1), IMAGE, || after(SLOW, broken()));
    assert!(ask("a").await.is_err());
    sleep(SLOW).await;
    assert_eq!(ask("a").await.unwrap_err().kind(), Reason::TooSlow);
    sleep(ERROR_KEPT).await;
    assert!(ask("b").await.is_err());
    assert!(!unpoisoned(&reads.table).tenants.contains_key("a"));
}

#[test]
fn errors_of_a_tenant_are_limited() {
    let mut table = Table::<u32, u32> {
        tenants: HashMap::new(),
        hasher: RandomState::new(),
        pruned: Instant::now(),
    };
    let tenant = table.tenant(&Arc::from("a"), &Limits::default());
    for read in 0..=MOST_ERRORS as u64 {
        tenant.remember(read, broken().unwrap_err());
    }
    assert_eq!(tenant.failed.len(), MOST_ERRORS);
}
