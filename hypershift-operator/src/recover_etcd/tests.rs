//! Flags, output and errors. `e2e` repairs a real etcd.

use clap::Parser as _;
use support::testing::Scenario;

use super::*;
use crate::args::{Cli, Command, RecoverEtcdFlags};

/// The flags, and whether the command repairs.
fn parse(flags: &[&str]) -> Result<(RecoverEtcdFlags, bool), clap::Error> {
    let line = ["hypershift-operator", "recover-etcd"];
    match Cli::try_parse_from(line.iter().chain(flags))?.command {
        Command::RecoverEtcd(args) => Ok(match args.command {
            RecoverEtcdCommand::Status(flags) => (flags, false),
            RecoverEtcdCommand::Run(flags) => (flags, true),
        }),
        other => panic!("{other:?}"),
    }
}

#[test]
fn flags_are_those_of_recovery_jobs() {
    let (args, repairs) = parse(&["run", "--namespace", "clusters-dev"]).unwrap();
    assert!(repairs);
    assert_eq!(args.namespace, "clusters-dev");
    let file = |path: &std::path::Path| path.display().to_string();
    assert_eq!(
        file(&args.etcd_client_cert),
        "/etc/etcd/tls/client/etcd-client.crt"
    );
    assert_eq!(
        file(&args.etcd_client_key),
        "/etc/etcd/tls/client/etcd-client.key"
    );
    assert_eq!(file(&args.etcd_ca_cert), "/etc/etcd/tls/etcd-ca/ca.crt");
    assert!(!parse(&["status", "--namespace=a"]).unwrap().1);
    for flags in [
        vec!["run"],
        vec!["--namespace=a"],
        vec!["repair", "--namespace=a"],
        vec!["run", "--namespace=a", "--shard=b"],
    ] {
        assert!(parse(&flags).is_err(), "{flags:?}");
    }
}

#[test]
fn states_are_printed_as_documented() {
    for (state, expected) in [
        (State::Healthy, "healthy"),
        (State::Missing("etcd-1"), "missing member: etcd-1"),
        (State::Failing("etcd-2"), "failing pod: etcd-2"),
        (
            State::Broken("reason".to_owned()),
            "broken: NOT RECOVERABLE",
        ),
    ] {
        assert_eq!(Printed(&state).to_string(), expected);
    }
}

/// Nothing is written when etcd cannot be reached.
#[tokio::test]
async fn an_unusable_certificate_is_named() {
    let args = parse(&[
        "run",
        "--namespace=clusters-dev",
        "--etcd-ca-cert=/does/not/exist",
    ]);
    let scenario = Scenario::new([]);
    let control = Control::new(&args.unwrap().0, scenario.client());
    let error = recover(&control).await.unwrap_err();
    let expected = "failed to list the members of etcd at https://etcd-client.clusters-dev.svc:2379: \
                    failed to read /does/not/exist";
    assert!(chain(&error).starts_with(expected), "{}", chain(&error));
    let code = Fatal::Program(Box::new(error)).exit_code();
    assert_eq!(
        format!("{code:?}"),
        format!("{:?}", std::process::ExitCode::FAILURE)
    );
    assert_eq!(scenario.seen().len(), 0);
}

/// A member could send the command, and its connection attempts, to any host.
#[tokio::test]
async fn urls_of_pods_and_at_the_endpoint_are_followed() {
    const POD: &str = "https://etcd-1.etcd-discovery.clusters-dev.svc:2379";
    const ELSEWHERE: &str = "https://127.0.0.1:2000";
    let scenario = Scenario::new([]);
    let here = "--endpoint=https://127.0.0.1:1000";
    for (endpoint, url, is_followed) in [
        (None, POD, true),
        (None, ELSEWHERE, false),
        (Some(here), ELSEWHERE, true),
    ] {
        let flags = ["status", "--namespace=clusters-dev"];
        let flags: Vec<_> = flags.into_iter().chain(endpoint).collect();
        let (args, _) = parse(&flags).unwrap();
        let control = Control::new(&args, scenario.client());
        let member = support::etcd::Member {
            name: "etcd-1".to_owned(),
            client_urls: vec![url.to_owned()],
            ..support::etcd::Member::default()
        };
        let found = control.urls.of(&member);
        assert_eq!(found.is_ok(), is_followed, "{endpoint:?} {url}: {found:?}");
    }
}

mod ownership {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use support::testing::{Answer, Expect};

    use super::*;
    use crate::recover_etcd::evaluation::Rollout;

    fn pod(uid: &str) -> Value {
        let owner = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "etcd", "uid": uid, "controller": true,
        });
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "etcd-1", "uid": "p", "ownerReferences": [owner] },
        })
    }

    fn claim(app: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": { "name": "data-etcd-1", "uid": "c", "labels": { "app": app } },
        })
    }

    const POD: &str = "/api/v1/namespaces/clusters-dev/pods/etcd-1";
    const CLAIM: &str = "/api/v1/namespaces/clusters-dev/persistentvolumeclaims/data-etcd-1";

    #[tokio::test]
    async fn only_objects_of_the_stateful_set_are_deleted() {
        for (name, pod_owner, app, expected) in [
            ("ours", "s", "etcd", None),
            (
                "a pod of another owner",
                "other",
                "etcd",
                Some("Pod clusters-dev/etcd-1"),
            ),
            (
                "a volume of another application",
                "s",
                "other",
                Some("PersistentVolumeClaim clusters-dev/data-etcd-1"),
            ),
        ] {
            let mut calls = vec![
                Expect::get(POD).answer(Answer::ok(&pod(pod_owner))),
                Expect::get(CLAIM).answer(Answer::ok(&claim(app))),
            ];
            if expected.is_none() {
                let precondition = |uid: &str| json!({ "preconditions": { "uid": uid } });
                let gone = || {
                    Answer::ok(
                        &json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" }),
                    )
                };
                calls.push(Expect::delete(CLAIM).body(precondition("c")).answer(gone()));
                calls.push(Expect::delete(POD).body(precondition("p")).answer(gone()));
            }
            let scenario = Arc::new(Scenario::new(calls));
            let (args, _) = parse(&["run", "--namespace=clusters-dev"]).unwrap();
            let control = Control::new(&args, scenario.client());
            let observed = Observed::new(Vec::new(), Rollout::default(), Some("s".to_owned()));
            let found = match Repair::check(&control, &observed, "etcd-1").await {
                Ok(repair) => repair.delete(&control, "etcd-1").await,
                Err(error) => Err(error),
            };
            let error = found.err().map(|error| error.to_string());
            let expected = expected.map(|object| {
                format!("failed to delete {object}: it does not belong to StatefulSet etcd")
            });
            assert_eq!(error, expected, "{name}");
            scenario.finish();
        }
    }
}
