//! Killed before or after any call, or with a lost response, and run again.

use fake_clouds::Fault;

use super::*;

/// All faults at a call.
fn faults(at: usize) -> [Fault; 3] {
    [
        Fault::KilledBefore(at),
        Fault::KilledAfter(at),
        Fault::Lost(at),
    ]
}

/// The same state as without a fault, and nothing twice: of a command with a file, in which each API key is written down.
#[tokio::test]
async fn creation_continues_where_it_was_interrupted() {
    let cluster = Cluster::new("a-x1", "a");
    let reference = account();
    cluster.create(&reference).await;
    let expected = reference.snapshot();
    for at in 0..reference.count() {
        for fault in faults(at) {
            let fake = account();
            let file = RefCell::new(None);
            fake.set_fault(Some(fault));
            let killed = cluster.attempt_with_file(&fake, Keys::Keep, &file).await;
            let may_succeed = matches!(fault, Fault::Lost(_));
            assert!(killed.is_err() || may_succeed, "{fault:?}");
            fake.set_fault(None);
            let result = cluster.attempt_with_file(&fake, Keys::Keep, &file).await;
            result.unwrap_or_else(|error| panic!("{fault:?}: {error:#}"));
            assert_eq!(fake.snapshot(), expected, "{fault:?}");
            let output = file.into_inner().unwrap();
            assert_secrets_are_valid(&fake, &output, &format!("{fault:?}"));
        }
    }
}

/// The same of `create cluster powervs`, which has no file: keys that were not written down are replaced.
#[tokio::test]
async fn a_cluster_is_continued_without_a_file_and_without_a_flag() {
    let cluster = Cluster::new("a-x1", "a");
    let reference = account();
    cluster.create(&reference).await;
    let expected = reference.snapshot();
    let request = CreateRequest {
        keys: Keys::ReplaceUnknown,
        ..request()
    };
    for at in 0..reference.count() {
        for fault in faults(at) {
            let fake = account();
            fake.set_fault(Some(fault));
            drop(cluster.attempt(&fake, &request).await);
            fake.set_fault(None);
            let (output, result) = cluster.attempt(&fake, &request).await;
            result.unwrap_or_else(|error| panic!("{fault:?}: {error:#}"));
            assert_eq!(fake.snapshot(), expected, "{fault:?}");
            assert_secrets_are_valid(&fake, &output, &format!("{fault:?}"));
        }
    }
}

/// The Secret of a key that is about to be replaced is not taken for that of the new key.
#[tokio::test]
async fn an_interrupted_replacement_of_api_keys_is_continued_without_the_flag() {
    let cluster = Cluster::new("a-x1", "a");
    let reference = account();
    let file = RefCell::new(None);
    let keep = Keys::Keep;
    let created = cluster.attempt_with_file(&reference, keep, &file).await;
    created.unwrap();
    let expected = reference.snapshot();
    reference.set_fault(None);
    let all = Keys::ReplaceAll;
    let replaced = cluster.attempt_with_file(&reference, all, &file).await;
    replaced.unwrap();
    assert_eq!(reference.snapshot(), expected);
    for at in 0..reference.count() {
        for fault in faults(at) {
            let fake = account();
            let file = RefCell::new(None);
            let created = cluster.attempt_with_file(&fake, keep, &file).await;
            created.unwrap();
            fake.set_fault(Some(fault));
            drop(cluster.attempt_with_file(&fake, all, &file).await);
            fake.set_fault(None);
            let result = cluster.attempt_with_file(&fake, keep, &file).await;
            result.unwrap_or_else(|error| panic!("{fault:?}: {error:#}"));
            assert_eq!(fake.snapshot(), expected, "{fault:?}");
            let output = file.into_inner().unwrap();
            assert_secrets_are_valid(&fake, &output, &format!("{fault:?}"));
        }
    }
}

/// Before there are API keys, nothing need be replaced.
#[tokio::test]
async fn an_interruption_before_the_first_api_key_needs_no_flag() {
    let cluster = Cluster::new("a-x1", "a");
    let reference = account();
    cluster.create(&reference).await;
    let is_key = |call: &support::rest::Request| {
        call.method == http::Method::POST && call.path() == "/v1/apikeys"
    };
    let first = reference.state().calls.iter().position(is_key).unwrap();
    for at in 0..first {
        let fake = account();
        fake.set_fault(Some(Fault::KilledAfter(at)));
        drop(cluster.attempt(&fake, &request()).await);
        fake.set_fault(None);
        cluster.create(&fake).await;
        assert_eq!(fake.snapshot(), reference.snapshot(), "killed after {at}");
    }
}

#[tokio::test]
async fn destruction_leaves_nothing_however_it_was_interrupted() {
    let cluster = Cluster::new("a-x1", "a");
    let reference = account();
    let before = reference.snapshot();
    cluster.create(&reference).await;
    cluster.leave(&reference);
    reference.set_fault(None);
    cluster.destroy(&reference).await.unwrap();
    assert_eq!(reference.snapshot(), before);
    for at in 0..reference.count() {
        for fault in faults(at) {
            let fake = account();
            cluster.create(&fake).await;
            cluster.leave(&fake);
            fake.set_fault(Some(fault));
            drop(cluster.destroy(&fake).await);
            fake.set_fault(None);
            let result = cluster.destroy(&fake).await;
            result.unwrap_or_else(|error| panic!("{fault:?}: {error:#}"));
            assert_eq!(fake.snapshot(), before, "{fault:?}");
        }
    }
}

#[tokio::test]
async fn what_an_interrupted_creation_leaves_can_be_destroyed() {
    let cluster = Cluster::new("a-x1", "a");
    let reference = account();
    let before = reference.snapshot();
    cluster.create(&reference).await;
    for at in 0..reference.count() {
        let fake = account();
        fake.set_fault(Some(Fault::KilledAfter(at)));
        drop(cluster.attempt(&fake, &request()).await);
        fake.set_fault(None);
        let result = cluster.destroy(&fake).await;
        result.unwrap_or_else(|error| panic!("killed after {at}: {error:#}"));
        assert_eq!(fake.snapshot(), before, "killed after {at}");
    }
}

/// Steps that fail do not keep the others from being done.
#[tokio::test]
async fn destruction_continues_on_errors_and_reports_all() {
    let cluster = Cluster::new("a-x1", "a");
    let fake = account();
    let before = fake.snapshot();
    cluster.create(&fake).await;
    cluster.leave(&fake);
    {
        let cloud = &mut fake.state().cloud;
        cloud.refuse("/dns_records", 403);
        cloud.refuse("DELETE /v1/policies", 403);
        cloud.refuse("DELETE /pcloud", 403);
    }
    let error = cluster.destroy(&fake).await.unwrap_err().to_string();
    for part in [
        "DNS record: failed to look for DNS record *.apps.a.example.com",
        "service IDs: failed to delete policy of service ID a-x1-cloud-controller-creds",
        "policy of service ID a-x1-image-registry-creds",
        "DHCP server: failed to delete DHCP server of workspace instance-0011",
        "workspace: workspace a-x1-pvs still exists",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let left = |kind| fake.state().cloud.all(kind).count();
    for kind in [
        Kind::Vpc,
        Kind::Subnet,
        Kind::LoadBalancer,
        Kind::Gateway,
        Kind::Connection,
        Kind::Bucket,
    ] {
        assert_eq!(left(kind), 0, "{kind:?}");
    }
    assert_eq!(left(Kind::DhcpServer), 1);
    fake.state().cloud.refuse_nothing();
    cluster.destroy(&fake).await.unwrap();
    assert_eq!(fake.snapshot(), before);
}
