//! Objects of a CRD's schema, at random but the same in each run.

use serde_json::{Map, Value, json};

/// Depth from which on only what is required is there.
const DEEP: usize = 12;

/// A source of numbers.
#[derive(Debug)]
pub(crate) struct Random(u64);

// === impl Random ===

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit.max(1)
    }

    fn often(&mut self) -> bool {
        self.below(3) > 0
    }

    /// An object of a standard kind in one version of its CRD.
    pub(crate) fn object(&mut self, crd: &Value, version: &Value, name: &str) -> Value {
        let group = crd["spec"]["group"].as_str().unwrap_or_default();
        let number = version["name"].as_str().unwrap_or_default();
        let properties = &version["schema"]["openAPIV3Schema"]["properties"];
        let mut object = json!({
            "apiVersion": format!("{group}/{number}"),
            "kind": crd["spec"]["names"]["kind"],
            "metadata": metadata(name),
        });
        for part in ["spec", "status"] {
            if properties[part].is_object() {
                object[part] = self.value(part, &properties[part], 0);
            }
        }
        object
    }

    fn value(&mut self, name: &str, schema: &Value, depth: usize) -> Value {
        if schema["x-kubernetes-int-or-string"] == true {
            return json!(self.below(100));
        }
        if let Some(choices) = schema["enum"].as_array() {
            return choices[self.below(choices.len())].clone();
        }
        match schema["type"].as_str() {
            Some("object") => self.fields(schema, depth),
            Some("array") => {
                let least = usize::from(schema["minItems"].is_u64());
                let count = if depth > DEEP {
                    least
                } else {
                    least + self.below(3)
                };
                let items = (0..count).map(|_| self.value(name, &schema["items"], depth + 1));
                items.collect()
            }
            Some("string") => self.text(name, schema),
            Some("integer") => json!(1 + self.below(50)),
            Some("number") => json!(0.5),
            Some("boolean") => json!(self.often()),
            _ => self.anything(name),
        }
    }

    /// Where a schema says nothing. Under some names there is a schema, which upstream has a type for.
    fn anything(&mut self, name: &str) -> Value {
        let schema = json!({"type": "string", "maxLength": self.below(9)});
        match name {
            "allOf" | "anyOf" | "oneOf" => json!([schema]),
            "additionalProperties" | "items" | "not" => schema,
            "properties" => json!({"any": schema}),
            _ => json!({"any": [self.below(9), "thing"]}),
        }
    }

    fn fields(&mut self, schema: &Value, depth: usize) -> Value {
        let Some(properties) = schema["properties"].as_object() else {
            return self.entries(schema, depth);
        };
        let has = |field: &str| properties.contains_key(field);
        if has("kind") && has("name") && (has("apiGroup") || has("apiVersion")) {
            return self.reference(properties);
        }
        let required = |field: &str| {
            let required = schema["required"].as_array().into_iter().flatten();
            required.into_iter().any(|one| one == field)
        };
        let mut object = Map::new();
        for (field, schema) in properties {
            if required(field) || (depth <= DEEP && self.often()) {
                object.insert(field.clone(), self.value(field, schema, depth + 1));
            }
        }
        Value::Object(object)
    }

    fn entries(&mut self, schema: &Value, depth: usize) -> Value {
        let value = &schema["additionalProperties"];
        if !value.is_object() {
            return json!({"any": {"thing": self.below(9)}});
        }
        // Some keys become values in another version: so they look like groups and are none, which both ways leave alone.
        let keys = [
            "a",
            "b.cluster.x-k8s.io/b",
            "b.infrastructure.cluster.x-k8s.io",
        ];
        let count = self.below(keys.len() + 1);
        let entry = |key: &&str| ((*key).to_owned(), self.value("entry", value, depth + 1));
        Value::Object(keys[..count].iter().map(entry).collect())
    }

    /// To a provider's kind that is there: the version that is named is looked up in the contract labels of its CRD.
    fn reference(&mut self, properties: &Map<String, Value>) -> Value {
        let (group, kind) = [
            ("infrastructure.cluster.x-k8s.io", "DevCluster"),
            ("infrastructure.cluster.x-k8s.io", "DevMachineTemplate"),
            ("bootstrap.cluster.x-k8s.io", "KubeadmConfigTemplate"),
            ("controlplane.cluster.x-k8s.io", "KubeadmControlPlane"),
        ][self.below(4)];
        let mut reference = json!({"kind": kind, "name": format!("name-{}", self.below(9))});
        if properties.contains_key("apiGroup") {
            reference["apiGroup"] = json!(group);
        } else {
            reference["apiVersion"] = json!(format!("{group}/v1beta2"));
        }
        reference
    }

    /// Valid as a duration, too, which a schema does not distinguish from a text.
    fn text(&mut self, name: &str, schema: &Value) -> Value {
        match (schema["format"].as_str(), name) {
            (Some("date-time"), _) => json!("2026-01-02T03:04:05Z"),
            (Some("byte"), _) => json!("Ynl0ZXM="),
            // Read by a type of its own.
            (_, "token") => json!("abcdef.0123456789abcdef"),
            _ => json!(format!("{}m0s", 1 + self.below(59))),
        }
    }
}

fn metadata(name: &str) -> Value {
    json!({
        "namespace": "conversion", "name": name, "uid": format!("uid-of-{name}"),
        "resourceVersion": "7", "generation": 3, "creationTimestamp": "2026-01-02T03:04:05Z",
        "labels": {"cluster.x-k8s.io/cluster-name": "one"},
        "annotations": {"cluster.x-k8s.io/cloned-from-groupkind": "Machine.cluster.x-k8s.io"},
        "finalizers": ["machine.cluster.x-k8s.io"],
        "ownerReferences": [{
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "one", "uid": "u", "controller": true,
        }],
        "managedFields": [{
            "manager": "manager", "operation": "Update", "apiVersion": "cluster.x-k8s.io/v1beta2",
            "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:cluster.x-k8s.io/cluster-name": {}}}},
        }],
    })
}
