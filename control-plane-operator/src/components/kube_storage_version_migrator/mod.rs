//! kube-storage-version-migrator: writes objects of the guest again after a change of encryption keys.

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::{Component, Context, assets};

/// The component's name.
const NAME: &str = "kube-storage-version-migrator";

pub(super) fn component() -> Component {
    Component::new(NAME, assets!("deployment.yaml")).enabled_if(is_required)
}

/// On IBM Cloud and Power VS, the provider migrates objects itself.
fn is_required(context: &Context<'_>) -> bool {
    let by_provider = [PlatformType::IbmCloud, PlatformType::PowerVs];
    context.spec().secret_encryption.is_some() && !by_provider.contains(&context.platform())
}
