//! Writes without a response: the API server has executed them, and the operators wait on a connection that stays
//! open. Each operator gives up after its deadline, and its next pass succeeds, in the same process and the same term.
//!
//! That a pass that hangs all the same fails liveness is tested in `support` (`a_hung_pass_fails_liveness`,
//! `a_pass_that_hangs_fails_liveness`).

mod loss;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::operator::{Lease, Operator, Replica, SOON, Server, Times};
use testbed::progress::Progress;
use testbed::relay::Relay;
use testbed::service::Service;
use testbed::simulation::Launched;
use testbed::testbed::Testbed;
use testbed::wait;

use crate::hosted_clusters_faults::fixture::{Fixture, NAME};
use crate::hosted_clusters_faults::{life, replacement};
use crate::lost_responses::loss::Loss;

/// The limit of a write (`support::deadline::Timeouts::write`), and what a busy machine may add.
const DEADLINE: Duration = Duration::from_secs(35 + 15);
/// How long a cluster may take after that.
const MADE_WITHIN: Duration = Duration::from_mins(4);
/// The log text of a write that timed out.
const TIMED_OUT: &str = "timed out: no complete answer";

/// Check T03.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_recover_from_a_write_whose_response_is_lost() -> Result<()> {
    let mut testbed = Testbed::start("lost-responses", Progress::detect()).await?;
    let outcome = scenario(&mut testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &mut Testbed) -> Result<()> {
    let fixture = Fixture::prepare(testbed).await?;
    let admin = &fixture.testbed.admin;
    let step = fixture.testbed.progress.step("hypershift-operator");
    let loss = Loss::of(&format!("/hostedcontrolplanes/{NAME}"));
    let relay = relay(&fixture, &loss).await?;
    let mut operator = hypershift_operator(&fixture, &relay.server()).await?;
    let term = leader(&fixture).await?;
    let pid = operator.service.pid();
    admin.apply(&fixture.desired()?).await?;
    let took = recovers(&loss, &operator.service, async || operator.is_ready().await).await?;
    step.done_with(&format!("{took:.1?}"));

    let step = fixture.testbed.progress.step("control-plane-operator");
    let loss = Loss::of("/deployments/kube-apiserver");
    let its_relay = self::relay(&fixture, &loss).await?;
    let mut control_plane = control_plane_operator(&fixture, &its_relay.server()).await?;
    let its_pid = control_plane.service.pid();
    let took = recovers(&loss, &control_plane.service, async || Ok(())).await?;
    step.done_with(&format!("{took:.1?}"));

    wait::until("the cluster to be available", MADE_WITHIN, async || {
        life::is_made(admin, "4.21.9").await
    })
    .await?;
    for (service, pid) in [
        (&mut operator.service, pid),
        (&mut control_plane.service, its_pid),
    ] {
        service.check()?;
        service.ready().await?;
        ensure!(service.pid() == pid, "{} was restarted", service.name());
    }
    let now = leader(&fixture).await?;
    ensure!(
        (&now.holder, now.epoch) == (&term.holder, term.epoch),
        "the leader was {term:?} and is {now:?}"
    );
    Ok(())
}

/// Waits until a response was lost, and then until the write has failed in time; gives how long that took. The operator is
/// ready then.
async fn recovers(
    loss: &Loss,
    service: &Service,
    is_ready: impl AsyncFn() -> Result<()>,
) -> Result<Duration> {
    let what = format!("a response to {} to be lost", service.name());
    let begun = wait::until(&what, MADE_WITHIN, async || {
        loss.at().context("none was lost yet")
    })
    .await?;
    let what = format!("{} to give up", service.name());
    wait::until(
        &what,
        DEADLINE.saturating_sub(begun.elapsed()),
        async || {
            let log = std::fs::read_to_string(service.log())?;
            ensure!(log.contains(TIMED_OUT), "its log says nothing of it");
            Ok(())
        },
    )
    .await?;
    let took = begun.elapsed();
    is_ready().await?;
    Ok(took)
}

async fn relay(fixture: &Fixture<'_>, loss: &Loss) -> Result<Relay> {
    let endpoint = fixture.testbed.control_plane.endpoint();
    Relay::before(&endpoint, loss.intercept()).await
}

async fn hypershift_operator(fixture: &Fixture<'_>, url: &str) -> Result<Replica> {
    let identity = fixture
        .identity(&fixture.programs, replacement::PROXY)
        .await?;
    let mut replica =
        identity.replica_at(fixture.testbed, "operator", server(url), Times::PATIENT)?;
    replica.service.start().await?;
    wait::until("the operator to be ready", SOON, async || {
        replica.is_ready().await
    })
    .await?;
    Ok(replica)
}

/// Starts it as soon as its Deployment is there.
async fn control_plane_operator(fixture: &Fixture<'_>, url: &str) -> Result<Launched> {
    let operator = Fixture::control_plane_operator(&fixture.programs);
    let environment = wait::until("its Deployment", MADE_WITHIN, async || {
        let expected = operator.expected_env(&fixture.testbed.admin).await?;
        expected.context("there is none yet")
    })
    .await?;
    let pod = "control-plane-operator";
    let (testbed, server) = (fixture.testbed, server(url));
    operator
        .start(testbed, pod, environment, server, Times::PATIENT)
        .await
}

fn server(url: &str) -> Server<'_> {
    Server {
        url,
        authority: None,
    }
}

/// The leader, which may acquire the lease only after it is ready.
async fn leader(fixture: &Fixture<'_>) -> Result<Lease> {
    wait::until("a leader", SOON, async || {
        let found = Operator::Private.holder(&fixture.testbed.admin).await?;
        found.context("there is no leader")
    })
    .await
}
