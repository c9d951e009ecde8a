//! Random messages: round trips, and arbitrary bytes.

use proptest::prelude::*;

use super::*;

fn names() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just("cluster.x-k8s.io/v1beta2".into()),
        Just("ipam.cluster.hypershift.openshift.io/v1beta2".into()),
        Just("cluster.x-k8s.io".into()),
        Just("machines.cluster.x-k8s.io".into()),
        prop::collection::vec(any::<u8>(), 0..6),
    ]
}

/// Messages with low field numbers, so that many of them hit places, and lengths with idle bytes.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let number_field = (1..20_u64, any::<u64>()).prop_map(|(field, value)| number(field, value));
    let name_field = (1..20_u64, names(), 0..3_usize).prop_map(|(field, content, padding)| {
        let mut out = varint(field << 3 | 2);
        assert!(wire::write_varint(content.len(), padding, &mut out));
        [out, content].concat()
    });
    let leaf = prop::collection::vec(prop_oneof![number_field, name_field], 0..4)
        .prop_map(|fields| fields.concat());
    leaf.prop_recursive(6, 40, 4, |inner| {
        let place = prop_oneof![Just(1_u64), Just(2), Just(13), Just(17), 3..9_u64];
        prop::collection::vec((place, inner), 1..4).prop_map(|fields| {
            fields
                .iter()
                .map(|(field, content)| bytes(*field, content))
                .collect::<Vec<_>>()
                .concat()
        })
    })
}

const RESOURCES: [(&str, &str); 6] = [
    ("", "events"),
    ("", "pods"),
    ("", "resourcequotas"),
    ("apps", "statefulsets"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("new.k8s.io", "news"),
];

proptest! {
    /// Check R02.
    #[test]
    fn protobuf_round_trips_to_the_same_bytes(object in messages(), pick in 0..RESOURCES.len()) {
        let (group, resource) = RESOURCES[pick];
        let input = body("", "", &[object]);
        if let Ok((out, _)) = swapped(group, resource, &input) {
            let (back, _) = swapped(group, resource, &out).unwrap();
            prop_assert_eq!(back, input);
        }
    }

    #[test]
    fn translating_arbitrary_protobuf_never_panics(input in prop::collection::vec(any::<u8>(), 0..200), pick in 0..RESOURCES.len()) {
        let (group, resource) = RESOURCES[pick];
        for input in [[MAGIC, &input].concat(), body("", "", &[input])] {
            if let Ok((out, _)) = swapped(group, resource, &input) {
                prop_assert_eq!(swapped(group, resource, &out).unwrap().0, input);
            }
        }
    }
}
