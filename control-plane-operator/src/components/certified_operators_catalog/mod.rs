//! certified-operators-catalog: serves the catalog of operators that Red Hat certified.

use control_plane_component::{Component, assets};

use super::catalogs::{self, Catalog};

pub(super) fn component() -> Component {
    let component = Component::new(
        "certified-operators-catalog",
        assets!("deployment.yaml", "service.yaml",),
    );
    catalogs::common(component, Catalog::Certified)
}
