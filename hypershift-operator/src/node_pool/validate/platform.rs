//! The machine of the platform, and its template.

use api::annotations::node_pool::PLATFORM_MACHINE_TEMPLATE;
use api::conditions::{PoolCondition, Status};
use payload::Minor;

use super::{Blocked, Evaluation, kept};
use crate::node_pool::adoption;
use crate::node_pool::conditions::Conditions;
use crate::node_pool::facts::Facts;
use crate::platform::machines::{self, Machine, Refused};

/// The first release whose Cluster API provider for AWS knows capacity reservations.
const CAPACITY_RESERVATIONS: Minor = Minor::of_4(19);

/// The machine template of the platform.
pub(super) fn platform(
    facts: &Facts,
    found: &mut Evaluation,
    conditions: &mut Conditions,
) -> Result<(), Blocked> {
    let Some(release) = found.release.clone() else {
        return Err(Blocked::Waiting);
    };
    let inputs = facts.machine_inputs(&release);
    let machine = match capacity_reservation(facts) {
        Some(refused) => Err(refused),
        None => machines::machine(&inputs),
    };
    match machine {
        Err(Refused {
            condition,
            reason,
            message,
        }) => {
            conditions.set(condition, Status::False, reason, kept(facts, &message));
            Err(Blocked::Waiting)
        }
        Ok(machine) => {
            let mut notes = machine.iter().flat_map(|it| &it.notes);
            if notes.all(|it| it.condition != PoolCondition::ValidPlatformConfig) {
                conditions.clear(PoolCondition::ValidPlatformConfig);
            }
            for note in machine.iter().flat_map(|it| &it.notes) {
                conditions.set(
                    note.condition,
                    note.is_so,
                    note.reason,
                    note.message.as_str(),
                );
            }
            settle(facts, machine.as_ref(), &inputs, conditions);
            found.machine = machine;
            Ok(())
        }
    }
}

/// Older providers ignore the reservation: the machines would run outside of it, and cost more than is wanted.
fn capacity_reservation(facts: &Facts) -> Option<Refused> {
    let aws = facts.pool.spec.platform.aws.as_ref()?;
    let placement = aws.placement.as_ref()?;
    placement.capacity_reservation.as_ref()?;
    // The provider is that of the control plane.
    let version = facts.cluster_version.as_ref()?;
    (version.minor() < CAPACITY_RESERVATIONS).then(|| Refused {
        condition: PoolCondition::ValidPlatformConfig,
        reason: "AWSError",
        message: format!(
            "spec.platform.aws.placement.capacityReservation requires release 4.19 or later of the HostedCluster, which \
             has {version}: upgrade the HostedCluster, or remove capacityReservation"
        ),
    })
}

fn settle(
    facts: &Facts,
    machine: Option<&Machine>,
    inputs: &machines::Inputs<'_>,
    conditions: &mut Conditions,
) {
    conditions.clear(PoolCondition::AwsSecurityGroupAvailable);
    let Some(machine) = machine else {
        return;
    };
    let about = PoolCondition::ValidPlatformImage;
    if machine.notes.iter().all(|it| it.condition != about) {
        conditions.good(about, "a boot image is available");
    }
    conditions.good(
        PoolCondition::ValidMachineTemplate,
        "the machine template is valid",
    );
    let about = PoolCondition::UpdatingPlatformMachineTemplate;
    let desired = adoption::template(facts, machine, inputs).name;
    match facts.annotation(PLATFORM_MACHINE_TEMPLATE.key()) {
        Some(current) if current != desired => {
            let message =
                format!("Replacing machines of template {current} with template {desired}");
            conditions.set(about, Status::True, "AsExpected", message);
        }
        Some(_) | None => conditions.off(about, "all machines have the current template"),
    }
}
