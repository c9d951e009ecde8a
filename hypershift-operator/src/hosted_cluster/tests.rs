//! Names that other systems depend on.

use super::*;

#[test]
fn the_namespace_of_a_control_plane_has_no_dots() {
    let id = Id {
        namespace: "clusters".to_owned(),
        name: "a.example.com".to_owned(),
    };
    assert_eq!(id.control_plane_namespace(), "clusters-a-example-com");
    assert_eq!(id.to_string(), "clusters/a.example.com");
}

#[test]
fn the_log_message_is_the_one_that_alerts_look_for() {
    assert_eq!(INVALID_STATE, "Invalid annotation state detected");
}
