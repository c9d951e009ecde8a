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
    assert!(table.tenants.len() <= 1, "{}", table.tenants.len());
    assert!(table.reads.is_empty());
}
