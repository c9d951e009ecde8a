//! community-operators-catalog: serves the catalog of operators of the community.

use control_plane_component::{Component, assets};

use super::catalogs::{self, Catalog};

pub(super) fn component() -> Component {
    let component = Component::new(
        "community-operators-catalog",
        assets!("deployment.yaml", "service.yaml",),
    );
    catalogs::common(component, Catalog::Community)
}
