//! Commands that are interrupted at each of their calls, and run again.

use super::*;

/// What can happen at a call.
fn faults(at: usize) -> [Fault; 3] {
    [
        Fault::KilledBefore(at),
        Fault::KilledAfter(at),
        Fault::Lost(at),
    ]
}

/// Killed before or after any call, or with a lost response, and run again: the same state, and nothing twice. `check` looks
/// at each of these accounts.
pub(super) async fn is_continued<T>(
    what: &str,
    account: impl AsyncFn() -> Fake,
    create: impl AsyncFn(&Fake) -> anyhow::Result<T>,
    check: impl Fn(&Fake, Fault),
) {
    let reference = account().await;
    create(&reference).await.unwrap();
    let expected = reference.state().snapshot();
    for at in 0..reference.count() {
        for fault in faults(at) {
            let fake = account().await;
            fake.set_fault(Some(fault));
            let interrupted = create(&fake).await;
            let may_succeed = matches!(fault, Fault::Lost(_));
            assert!(interrupted.is_err() || may_succeed, "{what} {fault:?}");
            fake.set_fault(None);
            create(&fake).await.unwrap();
            assert_eq!(fake.state().snapshot(), expected, "{what} {fault:?}");
            check(&fake, fault);
        }
    }
}

/// The same of a destruction, and of one that follows an interrupted creation: `rest` is what was expected then.
pub(super) async fn is_destroyed<T>(
    what: &str,
    account: impl AsyncFn() -> Fake,
    create: impl AsyncFn(&Fake) -> anyhow::Result<T>,
    destroy: impl AsyncFn(&Fake) -> anyhow::Result<()>,
    rest: impl Fn(&Fake) -> Vec<String>,
    expected: &[String],
) {
    let reference = account().await;
    create(&reference).await.unwrap();
    let creation = reference.count();
    reference.set_fault(None);
    destroy(&reference).await.unwrap();
    for at in 0..reference.count() {
        for fault in faults(at) {
            let fake = account().await;
            create(&fake).await.unwrap();
            fake.set_fault(Some(fault));
            drop(destroy(&fake).await);
            fake.set_fault(None);
            destroy(&fake).await.unwrap();
            assert_eq!(rest(&fake), expected, "{what} {fault:?}");
        }
    }
    for at in 0..creation {
        let fake = account().await;
        fake.set_fault(Some(Fault::KilledAfter(at)));
        drop(create(&fake).await);
        fake.set_fault(None);
        destroy(&fake).await.unwrap();
        assert_eq!(rest(&fake), expected, "{what}, killed after {at}");
    }
}
