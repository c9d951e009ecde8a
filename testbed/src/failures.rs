//! The failures that a hosted control plane is made to bear: what they are called, and what happens.

/// Names of failures with commas in between. Without it, all are replayed.
pub const VARIABLE: &str = "HYPERSHIFT_FAILURES";

/// A failure, or several of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Each member of etcd crashes.
    Members,
    /// Each kube-apiserver crashes.
    Servers,
    /// A pod of every other component is deleted.
    Others,
    /// A member of etcd loses its data.
    Data,
    /// Two of three members of etcd are lost.
    Quorum,
    /// The management cluster's control plane stops.
    Management,
    /// Each node is lost.
    Nodes,
    /// Nothing has a second replica.
    Single,
}

// === impl Failure ===

impl Failure {
    /// In the order in which they are replayed.
    pub const ALL: [Self; 8] = [
        Self::Members,
        Self::Servers,
        Self::Others,
        Self::Data,
        Self::Quorum,
        Self::Management,
        Self::Nodes,
        Self::Single,
    ];

    /// By which it is chosen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Members => "members",
            Self::Servers => "servers",
            Self::Others => "others",
            Self::Data => "data",
            Self::Quorum => "quorum",
            Self::Management => "management",
            Self::Nodes => "nodes",
            Self::Single => "single",
        }
    }

    /// What happens, for who chooses.
    pub fn what(self) -> &'static str {
        match self {
            Self::Members => "Each member of etcd crashes",
            Self::Servers => "Each kube-apiserver crashes",
            Self::Others => "A pod of every other component is deleted",
            Self::Data => "A member of etcd loses its data",
            Self::Quorum => "Two of three members of etcd are lost",
            Self::Management => "The management cluster's control plane stops",
            Self::Nodes => "Each node is lost",
            Self::Single => "With a single replica, etcd crashes, and kube-apiserver",
        }
    }
}
