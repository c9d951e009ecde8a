//! redhat-operators-catalog: serves the catalog of operators of Red Hat. It also has the ImageStream of all catalogs.

use control_plane_component::{Component, assets};

use super::catalogs::{self, Catalog};

pub(super) fn component() -> Component {
    let component = Component::new(
        "redhat-operators-catalog",
        assets!("deployment.yaml", "imagestream.yaml", "service.yaml",),
    );
    catalogs::common(component, Catalog::RedHat)
        .manifest("imagestream.yaml", catalogs::stream)
        .manifest_if("imagestream.yaml", catalogs::is_streamed)
}
