//! What pods get, by what the component and the hosted control plane are like.

use super::*;

#[test]
fn volumes_are_added_once() {
    let mut pod = PodSpec::default();
    add_volume(&mut pod, empty_volume("a", None));
    add_volume(&mut pod, secret_volume("a", "other"));
    assert_eq!(pod.volumes.unwrap().len(), 1);
}
