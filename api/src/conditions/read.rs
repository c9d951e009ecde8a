//! Reading conditions by what they are about.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::hypershift::v1beta1::node_pool::NodePoolCondition;

/// Whether something is the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// It is.
    True,
    /// It is not.
    False,
    /// Unknown, or not reported yet.
    Unknown,
}

/// What all forms of a condition have.
pub trait ReadCondition {
    /// What it is about.
    fn name(&self) -> &str;
    /// Whether it is the case.
    fn status(&self) -> Status;
}

/// The condition that is about this, if there is one.
pub fn find<C: ReadCondition>(conditions: &[C], about: impl AsRef<str>) -> Option<&C> {
    let about = about.as_ref();
    conditions
        .iter()
        .find(|condition| condition.name() == about)
}

/// Whether this is the case. Without a condition it is unknown.
pub fn status<C: ReadCondition>(conditions: &[C], about: impl AsRef<str>) -> Status {
    find(conditions, about).map_or(Status::Unknown, ReadCondition::status)
}

// === impl Status ===

impl Status {
    /// As it is written into a condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// The status of a condition. Any other text is unknown.
    pub fn read(word: &str) -> Self {
        match word {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

impl From<bool> for Status {
    fn from(is_so: bool) -> Self {
        if is_so { Self::True } else { Self::False }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl ReadCondition for Condition {
    fn name(&self) -> &str {
        &self.type_
    }

    fn status(&self) -> Status {
        Status::read(&self.status)
    }
}

impl ReadCondition for NodePoolCondition {
    fn name(&self) -> &str {
        &self.type_
    }

    fn status(&self) -> Status {
        Status::read(&self.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::PoolCondition;

    #[test]
    fn missing_conditions_are_unknown() {
        let conditions: Vec<NodePoolCondition> = serde_json::from_value(serde_json::json!([
            {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-31T12:00:00Z"},
            {"type": "ValidReleaseImage", "status": "maybe", "lastTransitionTime": "2030-01-31T12:00:00Z"},
        ]))
        .unwrap();
        for (about, expected) in [
            (PoolCondition::Ready, Status::True),
            (PoolCondition::ValidReleaseImage, Status::Unknown),
            (PoolCondition::AllMachinesReady, Status::Unknown),
        ] {
            assert_eq!(status(&conditions, about), expected, "{about}");
        }
        assert!(find(&conditions, "AllMachinesReady").is_none());
    }
}
